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

// LinkState is the state of the link that a PF reports to a VF.
type LinkState uint32

// The link states of a VF (IFLA_VF_LINK_STATE).
const (
	Auto    LinkState = nl.IFLA_VF_LINK_STATE_AUTO // the PF's own state
	Enable  LinkState = nl.IFLA_VF_LINK_STATE_ENABLE
	Disable LinkState = nl.IFLA_VF_LINK_STATE_DISABLE
)

func (s LinkState) String() string { return [...]string{"auto", "enable", "disable"}[min(s, Disable)] }

// VLAN is the VLAN that a card assigns to a VF's packets; ID 0 stands for none.
type VLAN struct {
	ID    int    // 0-4094
	QoS   int    // 802.1p, 0-7
	Proto string // Dot1Q or dot1AD
}

// The VLAN protocols.
const (
	Dot1Q  = "802.1Q"
	dot1AD = "802.1ad"
)

// Rates are limits of a VF's transmit rate in Mbit/s; 0 stands for no limit.
type Rates struct{ Min, Max int }

// VFKnobs are the properties of a VF that its PF controls. In a change, nil leaves a property unchanged; in a result,
// nil means that the kernel or the driver does not report it.
type VFKnobs struct {
	LinkState  *LinkState
	VLAN       *VLAN
	MAC        net.HardwareAddr // zeros: chosen by the VF
	NodeGUID   *uint64          // InfiniBand; read since Linux 5.5
	PortGUID   *uint64
	Rates      *Rates
	SpoofCheck *bool
	Trust      *bool
}

// ReadVF returns the properties of a VF of the PF with that index in ns. A link state of
// Auto may also mean that the driver does not support link states. VFs are identified by the
// number that the kernel reports with each, not by their position in the list.
//
// It parses the answer itself: the library's VfInfo has no GUIDs and no value for "not reported",
// without which SetVF could not know what to restore, and its request asks for all counters.
func ReadVF(ns *Namespace, pf, vf int) (VFKnobs, error) {
	req := ns.newRequest(unix.RTM_GETLINK, 0)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(pf)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(nl.RTEXT_FILTER_VF|skipStats)))
	messages, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return VFKnobs{}, explainError(err, "read VF %d of network interface %d", vf, pf)
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
	return VFKnobs{}, fmt.Errorf("read VF %d of network interface %d: %w: the PF has no such VF; see sriov_numvfs", vf,
		pf, ErrNotFound)
}

// findVF returns the properties of a VF from an IFLA_VFINFO_LIST.
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
			if a.Attr.Type == nl.IFLA_VF_MAC && len(a.Value) >= 4 && readWord(a.Value, 0) == uint32(vf) {
				return parseKnobs(attributes, hardware), true
			}
		}
	}
	return VFKnobs{}, false
}

func readWord(b []byte, i int) uint32 { return binary.NativeEndian.Uint32(b[4*i:]) }

// parseKnobs reads one IFLA_VF_INFO: each attribute is the VF's number and one or two values
// (linux/if_link.h).
func parseKnobs(attributes []syscall.NetlinkRouteAttr, hardware uint16) (k VFKnobs) {
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
				k.VLAN = &VLAN{int(readWord(v, 2)), int(readWord(v, 3)), parseProtocol(v[4+12:])}
			}
		case nl.IFLA_VF_RATE:
			if len(v) >= 12 {
				k.Rates = &Rates{int(readWord(v, 1)), int(readWord(v, 2))}
			}
		case nl.IFLA_VF_SPOOFCHK:
			k.SpoofCheck = parseSwitch(readWord(v, 1))
		case nl.IFLA_VF_TRUST:
			k.Trust = parseSwitch(readWord(v, 1))
		case nl.IFLA_VF_LINK_STATE:
			k.LinkState = new(LinkState(readWord(v, 1)))
		case nl.IFLA_VF_IB_NODE_GUID:
			k.NodeGUID = parseGUID(v)
		case nl.IFLA_VF_IB_PORT_GUID:
			k.PortGUID = parseGUID(v)
		}
	}
	return k
}

// parseSwitch reads a boolean; nil stands for all ones, the value of a driver without this
// property.
func parseSwitch(value uint32) *bool {
	if value == ^uint32(0) {
		return nil
	}
	return new(value != 0)
}

// parseGUID reads the attribute: __u32 vf, padding, __u64 guid.
func parseGUID(v []byte) *uint64 {
	if len(v) < 16 {
		return nil
	}
	return new(binary.NativeEndian.Uint64(v[8:]))
}

func parseProtocol(v []byte) string {
	if binary.BigEndian.Uint16(v) == unix.ETH_P_8021AD {
		return dot1AD
	}
	return Dot1Q
}

// skipStats is RTEXT_FILTER_SKIP_STATS (linux/rtnetlink.h), which leaves out the counters of
// VFs: they are slow to read and large.
const skipStats = 1 << 3
