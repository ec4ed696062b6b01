// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// macTime is the timeout for a driver to report a MAC that was set: some drivers pass it to
// the card later, and return EBUSY meanwhile.
const macTime = 2 * time.Second

var errLate = fmt.Errorf("the driver accepted it, but does not report it after %v", macTime)

// knob is one property of a VF: its name, whether it has to change, the message that sets
// it, and the message that restores it.
type knob struct {
	name   string
	differ bool
	attr   *nl.RtAttr
	undo   *nl.RtAttr // nil: the previous value is unknown
}

// SetVF sets the properties of a VF to want. It changes only those that differ, in this
// order: link state, VLAN, MAC, GUIDs, rates, spoof check, trust. The error names the
// property that failed. SetVF then restores the properties that it changed before, in
// reverse order; the error also names those that it cannot restore.
func SetVF(ns *Namespace, pf, vf int, want VFKnobs) error {
	have, err := ReadVF(ns, pf, vf)
	if err != nil {
		return err
	}
	if want.MAC != nil && have.MAC == nil {
		return fmt.Errorf("VF %d of network interface %d: set the MAC: %w: an InfiniBand VF has GUIDs instead", vf, pf, unix.EOPNOTSUPP)
	}
	var changed []knob
	for _, k := range orderKnobs(uint32(vf), have, want) {
		if !k.differ {
			continue
		}
		err := ns.setKnob(pf, vf, k, want)
		if err == nil {
			changed = append(changed, k)
			continue
		}
		err = explainError(err, "VF %d of network interface %d: set the %s", vf, pf, k.name)
		if errors.Is(err, unix.EINVAL) {
			err = fmt.Errorf("%w; the card does not accept that value, or not while its own link is down", err)
		}
		if errors.Is(err, errLate) || errors.Is(err, unix.EBUSY) { // the change may still take effect
			changed = append(changed, k)
		}
		return errors.Join(err, ns.undoKnobs(pf, vf, changed))
	}
	return nil
}

func (n *Namespace) undoKnobs(pf, vf int, changed []knob) error {
	var errs []error
	for _, k := range slices.Backward(changed) {
		err := errors.New("the driver does not report the previous value")
		if k.undo != nil {
			err = n.sendKnob(pf, k.undo)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("VF %d of network interface %d: set the %s back: %w", vf, pf, k.name, err))
		}
	}
	return errors.Join(errs...)
}

// setKnob sends the message for one property. It reads a MAC back until the driver reports
// it.
func (n *Namespace) setKnob(pf, vf int, k knob, want VFKnobs) error {
	err := n.sendKnob(pf, k.attr)
	if k.name != "MAC" {
		return err
	}
	pause := 5 * time.Millisecond
	for end := time.Now().Add(macTime); time.Now().Before(end); pause = min(2*pause, 200*time.Millisecond) {
		if err == nil {
			now, readErr := ReadVF(n, pf, vf)
			if readErr != nil {
				return readErr
			}
			if bytes.Equal(now.MAC, want.MAC) {
				return nil
			}
		} else if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EAGAIN) {
			return err
		}
		time.Sleep(pause)
		err = n.sendKnob(pf, k.attr)
	}
	if err == nil {
		err = errLate
	}
	return err
}

func (n *Namespace) sendKnob(pf int, attr *nl.RtAttr) error {
	req := n.newRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(pf)
	req.AddData(msg)
	list := nl.NewRtAttr(unix.IFLA_VFINFO_LIST|unix.NLA_F_NESTED, nil)
	list.AddRtAttr(nl.IFLA_VF_INFO|unix.NLA_F_NESTED, nil).AddChild(attr)
	req.AddData(list)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// orderKnobs returns all properties in the order in which SetVF changes them.
func orderKnobs(vf uint32, have, want VFKnobs) []knob {
	return []knob{
		newKnob("link state", have.LinkState, want.LinkState, func(s LinkState) *nl.RtAttr { return encodeWords(nl.IFLA_VF_LINK_STATE, vf, uint32(s)) }),
		newKnob("VLAN", have.VLAN, want.VLAN, func(v VLAN) *nl.RtAttr { return encodeVLAN(vf, v) }),
		{"MAC", want.MAC != nil && !bytes.Equal(have.MAC, want.MAC), encodeMAC(vf, want.MAC), encodeMAC(vf, have.MAC)},
		newKnob("node GUID", have.NodeGUID, want.NodeGUID, func(g uint64) *nl.RtAttr { return encodeGUID(nl.IFLA_VF_IB_NODE_GUID, vf, g) }),
		newKnob("port GUID", have.PortGUID, want.PortGUID, func(g uint64) *nl.RtAttr { return encodeGUID(nl.IFLA_VF_IB_PORT_GUID, vf, g) }),
		newKnob("rates", have.Rates, want.Rates, func(r Rates) *nl.RtAttr { return encodeWords(nl.IFLA_VF_RATE, vf, uint32(r.Min), uint32(r.Max)) }),
		newKnob("spoof check", have.SpoofCheck, want.SpoofCheck, func(on bool) *nl.RtAttr { return encodeWords(nl.IFLA_VF_SPOOFCHK, vf, toNumber(on)) }),
		newKnob("trust", have.Trust, want.Trust, func(on bool) *nl.RtAttr { return encodeWords(nl.IFLA_VF_TRUST, vf, toNumber(on)) }),
	}
}

func newKnob[T comparable](name string, have, want *T, attr func(T) *nl.RtAttr) knob {
	k := knob{name: name, differ: want != nil && (have == nil || *have != *want)}
	if k.differ {
		k.attr = attr(*want)
		if have != nil {
			k.undo = attr(*have)
		}
	}
	return k
}

func toNumber(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

func encodeWords(kind int, values ...uint32) *nl.RtAttr {
	var b []byte
	for _, v := range values {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return nl.NewRtAttr(kind, b)
}

// encodeMAC returns the attribute of a MAC; struct ifla_vf_mac has room for 32 bytes.
func encodeMAC(vf uint32, address []byte) *nl.RtAttr {
	if address == nil {
		return nil
	}
	var b [36]byte
	binary.NativeEndian.PutUint32(b[:], vf)
	copy(b[4:], address)
	return nl.NewRtAttr(nl.IFLA_VF_MAC, b[:])
}

// encodeVLAN returns the attribute of a VLAN. IFLA_VF_VLAN supports 802.1Q only, and is what
// older drivers and kernels accept.
func encodeVLAN(vf uint32, v VLAN) *nl.RtAttr {
	if v.Proto != dot1AD {
		return encodeWords(nl.IFLA_VF_VLAN, vf, uint32(v.ID), uint32(v.QoS))
	}
	b := encodeWords(nl.IFLA_VF_VLAN, vf, uint32(v.ID), uint32(v.QoS)).Data
	b = binary.BigEndian.AppendUint16(b, unix.ETH_P_8021AD)
	list := nl.NewRtAttr(nl.IFLA_VF_VLAN_LIST|unix.NLA_F_NESTED, nil)
	list.AddRtAttr(nl.IFLA_VF_VLAN_INFO, append(b, 0, 0)) // struct ifla_vf_vlan_info, padded
	return list
}

func encodeGUID(kind int, vf uint32, g uint64) *nl.RtAttr {
	b := encodeWords(kind, vf, 0).Data
	return nl.NewRtAttr(kind, binary.NativeEndian.AppendUint64(b, g))
}
