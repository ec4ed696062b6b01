// SPDX-License-Identifier: Apache-2.0

package link

import (
	"encoding/binary"
	"fmt"
	"net"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// LinkState is what a VF is told about the PF's wire.
type LinkState uint32

// The link states of a VF (IFLA_VF_LINK_STATE).
const (
	Auto    LinkState = nl.IFLA_VF_LINK_STATE_AUTO // that of the PF
	Enable  LinkState = nl.IFLA_VF_LINK_STATE_ENABLE
	Disable LinkState = nl.IFLA_VF_LINK_STATE_DISABLE
)

func (s LinkState) String() string { return [...]string{"auto", "enable", "disable"}[min(s, Disable)] }

// VLAN is the VLAN that a card puts a VF's packets into; ID 0: none.
type VLAN struct {
	ID    int    // 0-4094
	QoS   int    // 802.1p, 0-7
	Proto string // Dot1Q or Dot1AD
}

// The protocols of a VLAN.
const (
	Dot1Q  = "802.1Q"
	dot1AD = "802.1ad"
)

// Rates are limits of what a VF sends, in Mbit/s; 0: none.
type Rates struct{ Min, Max int }

// VFKnobs are what a PF decides about one of its VFs: what is nil is left alone
// when it is set, and is not told by the kernel or the driver when it was read.
type VFKnobs struct {
	LinkState  *LinkState
	VLAN       *VLAN
	MAC        net.HardwareAddr // zeros: the VF may choose
	NodeGUID   *uint64          // InfiniBand; read since Linux 5.5
	PortGUID   *uint64
	Rates      *Rates
	SpoofCheck *bool
	Trust      *bool
}

// ReadVF reads the knobs of a VF of the PF with that index in ns. A link state of
// Auto may also mean that the driver has none. VFs are found by the number that
// the kernel gives with each, not by their place in its list.
func ReadVF(ns *Namespace, pf, vf int) (VFKnobs, error) {
	req := ns.request(unix.RTM_GETLINK, 0)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(pf)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(nl.RTEXT_FILTER_VF|skipStats)))
	messages, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return VFKnobs{}, failed(err, "read VF %d of network interface %d", vf, pf)
	}
	header := nl.DeserializeIfInfomsg(messages[0])
	attributes, err := nl.ParseRouteAttr(messages[0][header.Len():])
	if err != nil {
		return VFKnobs{}, fmt.Errorf("read VF %d of network interface %d: %w", vf, pf, err)
	}
	for _, a := range attributes {
		if a.Attr.Type&^unix.NLA_F_NESTED == unix.IFLA_VFINFO_LIST {
			if knobs, found := findVF(a.Value, vf, header.Type); found {
				return knobs, nil
			}
		}
	}
	return VFKnobs{}, fmt.Errorf("read VF %d of network interface %d: %w: the PF has no such VF; see sriov_numvfs", vf, pf, ErrNotFound)
}

// findVF looks through an IFLA_VFINFO_LIST.
func findVF(list []byte, vf int, hardware uint16) (VFKnobs, bool) {
	infos, err := nl.ParseRouteAttr(list)
	if err != nil {
		return VFKnobs{}, false
	}
	for _, info := range infos {
		attributes, err := nl.ParseRouteAttr(info.Value)
		if err != nil {
			continue
		}
		for _, a := range attributes {
			if a.Attr.Type == nl.IFLA_VF_MAC && len(a.Value) >= 4 && word(a.Value, 0) == uint32(vf) {
				return knobs(attributes, hardware), true
			}
		}
	}
	return VFKnobs{}, false
}

func word(b []byte, i int) uint32 { return binary.NativeEndian.Uint32(b[4*i:]) }

// knobs reads one IFLA_VF_INFO: each attribute is the VF's number and one or two values (linux/if_link.h).
func knobs(attributes []syscall.NetlinkRouteAttr, hardware uint16) (k VFKnobs) {
	for _, a := range attributes {
		v := a.Value
		if len(v) < 8 {
			continue
		}
		switch a.Attr.Type &^ unix.NLA_F_NESTED {
		case nl.IFLA_VF_MAC:
			if hardware == unix.ARPHRD_ETHER && len(v) >= 10 {
				k.MAC = append(k.MAC, v[4:10]...)
			}
		case nl.IFLA_VF_VLAN_LIST: // one nl.IFLA_VF_VLAN_INFO
			if len(v) >= 4+14 {
				k.VLAN = &VLAN{int(word(v, 2)), int(word(v, 3)), protocol(v[4+12:])}
			}
		case nl.IFLA_VF_RATE:
			if len(v) >= 12 {
				k.Rates = &Rates{int(word(v, 1)), int(word(v, 2))}
			}
		case nl.IFLA_VF_SPOOFCHK:
			k.SpoofCheck = told(word(v, 1))
		case nl.IFLA_VF_TRUST:
			k.Trust = told(word(v, 1))
		case nl.IFLA_VF_LINK_STATE:
			k.LinkState = new(LinkState(word(v, 1)))
		case nl.IFLA_VF_IB_NODE_GUID:
			k.NodeGUID = guid(v)
		case nl.IFLA_VF_IB_PORT_GUID:
			k.PortGUID = guid(v)
		}
	}
	return k
}

// told is a switch; all ones stand for a driver that has not got it.
func told(value uint32) *bool {
	if value == ^uint32(0) {
		return nil
	}
	return new(value != 0)
}

// guid: __u32 vf, padding, __u64 guid.
func guid(v []byte) *uint64 {
	if len(v) < 16 {
		return nil
	}
	return new(binary.NativeEndian.Uint64(v[8:]))
}

func protocol(v []byte) string {
	if binary.BigEndian.Uint16(v) == unix.ETH_P_8021AD {
		return dot1AD
	}
	return Dot1Q
}

// skipStats is RTEXT_FILTER_SKIP_STATS (linux/rtnetlink.h): counters of every VF are slow, and large.
const skipStats = 1 << 3
