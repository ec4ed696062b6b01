// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"encoding/binary"
	"net"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// knob is one property of a VF. set uses the library's sockets, which do not request the kernel's extended error texts:
// a driver's ndo_set_vf_* has none to give (linux/netdevice.h).
type knob struct {
	name   string
	only   func(VFKnobs) (alone VFKnobs, known bool) // returns the property alone, and whether it is known
	differ func(have, want VFKnobs) bool             // reports whether the property has to change
	set    func(h *netlink.Handle, pf netlink.Link, vf int, to VFKnobs) error
}

// knobs are all properties, in the order in which they are set.
var knobs = []knob{
	newKnob("link state", func(k *VFKnobs) **LinkState { return &k.LinkState },
		func(h *netlink.Handle, pf netlink.Link, vf int, to LinkState) error {
			return h.LinkSetVfState(pf, vf, uint32(to))
		}),
	newKnob("VLAN", func(k *VFKnobs) **VLAN { return &k.VLAN }, setVLAN),
	{"MAC",
		func(k VFKnobs) (VFKnobs, bool) { return VFKnobs{MAC: k.MAC}, k.MAC != nil },
		func(have, want VFKnobs) bool { return want.MAC != nil && !bytes.Equal(have.MAC, want.MAC) },
		func(h *netlink.Handle, pf netlink.Link, vf int, to VFKnobs) error {
			return h.LinkSetVfHardwareAddr(pf, vf, to.MAC)
		}},
	newKnob("node GUID", func(k *VFKnobs) **uint64 { return &k.NodeGUID },
		func(h *netlink.Handle, pf netlink.Link, vf int, to uint64) error {
			return h.LinkSetVfGUID(pf, vf, encodeGUID(to), nl.IFLA_VF_IB_NODE_GUID)
		}),
	newKnob("port GUID", func(k *VFKnobs) **uint64 { return &k.PortGUID },
		func(h *netlink.Handle, pf netlink.Link, vf int, to uint64) error {
			return h.LinkSetVfGUID(pf, vf, encodeGUID(to), nl.IFLA_VF_IB_PORT_GUID)
		}),
	newKnob("rates", func(k *VFKnobs) **Rates { return &k.Rates },
		func(h *netlink.Handle, pf netlink.Link, vf int, to Rates) error {
			return h.LinkSetVfRate(pf, vf, to.Min, to.Max)
		}),
	newKnob("spoof check", func(k *VFKnobs) **bool { return &k.SpoofCheck }, (*netlink.Handle).LinkSetVfSpoofchk),
	newKnob("trust", func(k *VFKnobs) **bool { return &k.Trust }, (*netlink.Handle).LinkSetVfTrust),
}

// newKnob returns the property in a field of VFKnobs.
func newKnob[T comparable](
	name string, field func(*VFKnobs) **T, set func(*netlink.Handle, netlink.Link, int, T) error,
) knob {
	return knob{name,
		func(k VFKnobs) (alone VFKnobs, known bool) {
			*field(&alone) = *field(&k)
			return alone, *field(&k) != nil
		},
		func(have, want VFKnobs) bool {
			is, to := *field(&have), *field(&want)
			return to != nil && (is == nil || *is != *to)
		},
		func(h *netlink.Handle, pf netlink.Link, vf int, to VFKnobs) error {
			return set(h, pf, vf, **field(&to))
		}}
}

// Split returns the known properties one by one, in the order in which they are set.
func (k VFKnobs) Split() (all []VFKnobs) {
	for _, p := range knobs {
		if alone, known := p.only(k); known {
			all = append(all, alone)
		}
	}
	return all
}

// setVLAN sets the VLAN. The call without a protocol is for 802.1Q only, and is what older
// drivers and kernels accept.
func setVLAN(h *netlink.Handle, pf netlink.Link, vf int, v VLAN) error {
	if v.Proto != dot1AD {
		return h.LinkSetVfVlanQos(pf, vf, v.ID, v.QoS)
	}
	return h.LinkSetVfVlanQosProto(pf, vf, v.ID, v.QoS, unix.ETH_P_8021AD)
}

// encodeGUID returns a GUID in network byte order.
func encodeGUID(g uint64) net.HardwareAddr { return binary.BigEndian.AppendUint64(nil, g) }
