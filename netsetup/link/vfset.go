// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// macTime is the timeout for a driver to report a MAC that was set: some drivers pass it to
// the card later, and return EBUSY meanwhile.
const macTime = 2 * time.Second

var errLate = fmt.Errorf("the driver accepted it, but does not report it after %v", macTime)

// knob is one property of a VF: its name, whether it has to change, the call that sets it, and
// the call that restores it. The calls use the library's sockets, which do not ask for the
// kernel's extended error texts: ndo_set_vf_* of a driver has none to give (linux/netdevice.h).
type knob struct {
	name    string
	differ  bool
	set     func() error
	restore func() error // nil: the previous value is unknown
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
	for _, k := range orderKnobs(ns.handle, pf, vf, have, want) {
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
		return errors.Join(err, restoreKnobs(pf, vf, changed))
	}
	return nil
}

func restoreKnobs(pf, vf int, changed []knob) error {
	var errs []error
	for _, k := range slices.Backward(changed) {
		err := errors.New("the driver does not report the previous value")
		if k.restore != nil {
			err = k.restore()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("VF %d of network interface %d: set the %s back: %w", vf, pf, k.name, err))
		}
	}
	return errors.Join(errs...)
}

// setKnob sets one property. It reads a MAC back until the driver reports it.
func (n *Namespace) setKnob(pf, vf int, k knob, want VFKnobs) error {
	err := k.set()
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
		err = k.set()
	}
	if err == nil {
		err = errLate
	}
	return err
}

// orderKnobs returns all properties in the order in which SetVF changes them.
func orderKnobs(h *netlink.Handle, pf, vf int, have, want VFKnobs) []knob {
	on := linkAt(pf)
	return []knob{
		newKnob("link state", have.LinkState, want.LinkState, func(s LinkState) error { return h.LinkSetVfState(on, vf, uint32(s)) }),
		newKnob("VLAN", have.VLAN, want.VLAN, func(v VLAN) error { return setVLAN(h, on, vf, v) }),
		newKnob("MAC", keyOf(have.MAC), keyOf(want.MAC), func(mac string) error { return h.LinkSetVfHardwareAddr(on, vf, net.HardwareAddr(mac)) }),
		newKnob("node GUID", have.NodeGUID, want.NodeGUID, func(g uint64) error { return h.LinkSetVfGUID(on, vf, encodeGUID(g), nl.IFLA_VF_IB_NODE_GUID) }),
		newKnob("port GUID", have.PortGUID, want.PortGUID, func(g uint64) error { return h.LinkSetVfGUID(on, vf, encodeGUID(g), nl.IFLA_VF_IB_PORT_GUID) }),
		newKnob("rates", have.Rates, want.Rates, func(r Rates) error { return h.LinkSetVfRate(on, vf, r.Min, r.Max) }),
		newKnob("spoof check", have.SpoofCheck, want.SpoofCheck, func(check bool) error { return h.LinkSetVfSpoofchk(on, vf, check) }),
		newKnob("trust", have.Trust, want.Trust, func(trust bool) error { return h.LinkSetVfTrust(on, vf, trust) }),
	}
}

func newKnob[T comparable](name string, have, want *T, set func(T) error) knob {
	k := knob{name: name, differ: want != nil && (have == nil || *have != *want)}
	if k.differ {
		k.set = func() error { return set(*want) }
		if have != nil {
			k.restore = func() error { return set(*have) }
		}
	}
	return k
}

// keyOf returns a MAC as a value that can be compared, or nil for none.
func keyOf(mac net.HardwareAddr) *string {
	if mac == nil {
		return nil
	}
	return new(string(mac))
}

// setVLAN sets the VLAN. The call without a protocol is for 802.1Q only, and is what older
// drivers and kernels accept.
func setVLAN(h *netlink.Handle, on netlink.Link, vf int, v VLAN) error {
	if v.Proto != dot1AD {
		return h.LinkSetVfVlanQos(on, vf, v.ID, v.QoS)
	}
	return h.LinkSetVfVlanQosProto(on, vf, v.ID, v.QoS, unix.ETH_P_8021AD)
}

// encodeGUID returns a GUID in network byte order.
func encodeGUID(g uint64) net.HardwareAddr { return binary.BigEndian.AppendUint64(nil, g) }
