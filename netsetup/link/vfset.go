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

// macTime bounds how long a driver may take to show a MAC that it was given:
// some hand it to the card later, and answer EBUSY meanwhile.
const macTime = 2 * time.Second

var errLate = fmt.Errorf("the driver took it, but does not show it after %v", macTime)

// knob is one property of a VF: how it is called, if it is to change, the message, what it was.
type knob struct {
	name   string
	differ bool
	attr   *nl.RtAttr
	undo   *nl.RtAttr // nil: the kernel does not tell what it was
}

// SetVF makes a VF of the PF be as want says, and changes only what differs, in
// this order: link state, VLAN, MAC, GUIDs, rates, spoof check, trust. An error
// names the knob. Knobs that were changed before it are set back, the last one
// first; what could not be is told in the same error.
func SetVF(ns *Namespace, pf, vf int, want VFKnobs) error {
	have, err := ReadVF(ns, pf, vf)
	if err != nil {
		return err
	}
	if want.MAC != nil && have.MAC == nil {
		return fmt.Errorf("VF %d of network interface %d: set the MAC: %w: an InfiniBand VF has GUIDs instead", vf, pf, unix.EOPNOTSUPP)
	}
	var changed []knob
	for _, k := range order(uint32(vf), have, want) {
		if !k.differ {
			continue
		}
		err := ns.setKnob(pf, vf, k, want)
		if err == nil {
			changed = append(changed, k)
			continue
		}
		err = failed(err, "VF %d of network interface %d: set the %s", vf, pf, k.name)
		if errors.Is(err, unix.EINVAL) {
			err = fmt.Errorf("%w; the card does not have that value, or not while its own link is down", err)
		}
		if errors.Is(err, errLate) || errors.Is(err, unix.EBUSY) { // it may yet come to pass
			changed = append(changed, k)
		}
		return errors.Join(err, ns.undoVF(pf, vf, changed))
	}
	return nil
}

func (n *Namespace) undoVF(pf, vf int, changed []knob) error {
	var errs []error
	for _, k := range slices.Backward(changed) {
		err := errors.New("the driver does not tell what it was")
		if k.undo != nil {
			err = n.sendVF(pf, k.undo)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("VF %d of network interface %d: set the %s back: %w", vf, pf, k.name, err))
		}
	}
	return errors.Join(errs...)
}

// setKnob sends one message. A MAC is read back until the driver has it.
func (n *Namespace) setKnob(pf, vf int, k knob, want VFKnobs) error {
	err := n.sendVF(pf, k.attr)
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
		err = n.sendVF(pf, k.attr)
	}
	if err == nil {
		err = errLate
	}
	return err
}

func (n *Namespace) sendVF(pf int, attr *nl.RtAttr) error {
	req := n.request(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(pf)
	req.AddData(msg)
	list := nl.NewRtAttr(unix.IFLA_VFINFO_LIST|unix.NLA_F_NESTED, nil)
	list.AddRtAttr(nl.IFLA_VF_INFO|unix.NLA_F_NESTED, nil).AddChild(attr)
	req.AddData(list)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// order is what may be set, in the order in which it is.
func order(vf uint32, have, want VFKnobs) []knob {
	return []knob{
		of("link state", have.LinkState, want.LinkState, func(s LinkState) *nl.RtAttr { return words(nl.IFLA_VF_LINK_STATE, vf, uint32(s)) }),
		of("VLAN", have.VLAN, want.VLAN, func(v VLAN) *nl.RtAttr { return vlan(vf, v) }),
		{"MAC", want.MAC != nil && !bytes.Equal(have.MAC, want.MAC), mac(vf, want.MAC), mac(vf, have.MAC)},
		of("node GUID", have.NodeGUID, want.NodeGUID, func(g uint64) *nl.RtAttr { return guidAttr(nl.IFLA_VF_IB_NODE_GUID, vf, g) }),
		of("port GUID", have.PortGUID, want.PortGUID, func(g uint64) *nl.RtAttr { return guidAttr(nl.IFLA_VF_IB_PORT_GUID, vf, g) }),
		of("rates", have.Rates, want.Rates, func(r Rates) *nl.RtAttr { return words(nl.IFLA_VF_RATE, vf, uint32(r.Min), uint32(r.Max)) }),
		of("spoof check", have.SpoofCheck, want.SpoofCheck, func(on bool) *nl.RtAttr { return words(nl.IFLA_VF_SPOOFCHK, vf, number(on)) }),
		of("trust", have.Trust, want.Trust, func(on bool) *nl.RtAttr { return words(nl.IFLA_VF_TRUST, vf, number(on)) }),
	}
}

func of[T comparable](name string, have, want *T, attr func(T) *nl.RtAttr) knob {
	k := knob{name: name, differ: want != nil && (have == nil || *have != *want)}
	if k.differ {
		k.attr = attr(*want)
		if have != nil {
			k.undo = attr(*have)
		}
	}
	return k
}

func number(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

func words(kind int, values ...uint32) *nl.RtAttr {
	var b []byte
	for _, v := range values {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return nl.NewRtAttr(kind, b)
}

// mac: struct ifla_vf_mac has room for 32 bytes.
func mac(vf uint32, address []byte) *nl.RtAttr {
	if address == nil {
		return nil
	}
	var b [36]byte
	binary.NativeEndian.PutUint32(b[:], vf)
	copy(b[4:], address)
	return nl.NewRtAttr(nl.IFLA_VF_MAC, b[:])
}

// vlan: IFLA_VF_VLAN knows 802.1Q only, and is what older drivers and kernels have.
func vlan(vf uint32, v VLAN) *nl.RtAttr {
	if v.Proto != dot1AD {
		return words(nl.IFLA_VF_VLAN, vf, uint32(v.ID), uint32(v.QoS))
	}
	b := words(nl.IFLA_VF_VLAN, vf, uint32(v.ID), uint32(v.QoS)).Data
	b = binary.BigEndian.AppendUint16(b, unix.ETH_P_8021AD)
	list := nl.NewRtAttr(nl.IFLA_VF_VLAN_LIST|unix.NLA_F_NESTED, nil)
	list.AddRtAttr(nl.IFLA_VF_VLAN_INFO, append(b, 0, 0)) // struct ifla_vf_vlan_info, padded
	return list
}

func guidAttr(kind int, vf uint32, g uint64) *nl.RtAttr {
	b := words(kind, vf, 0).Data
	return nl.NewRtAttr(kind, binary.NativeEndian.AppendUint64(b, g))
}
