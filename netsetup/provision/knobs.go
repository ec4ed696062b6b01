// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
)

// knob is one property that a PF holds for a VF, as text.
type knob struct {
	name string
	text func(link.VFKnobs) string // "": not reported by the driver
	read func(string) (link.VFKnobs, error)
}

var (
	macKnob = knob{"MAC",
		func(v link.VFKnobs) string { return v.MAC.String() },
		func(t string) (v link.VFKnobs, err error) { v.MAC, err = net.ParseMAC(t); return },
	}
	guidKnob = knob{"GUID", formatGUID, func(t string) (v link.VFKnobs, err error) {
		mac, err := net.ParseMAC(t)
		if err != nil || len(mac) != 8 {
			return v, fmt.Errorf("%q is not a GUID", t)
		}
		guid := binary.BigEndian.Uint64(mac)
		return link.VFKnobs{NodeGUID: &guid, PortGUID: &guid}, nil
	}}
	vlanKnob = knob{"VLAN",
		func(v link.VFKnobs) string {
			switch {
			case v.VLAN == nil:
				return ""
			case v.VLAN.ID == 0:
				return "none"
			}
			return fmt.Sprintf("%d qos %d %s", v.VLAN.ID, v.VLAN.QoS, v.VLAN.Proto)
		},
		func(t string) (link.VFKnobs, error) {
			vlan := link.VLAN{Proto: link.Dot1Q}
			if t == "none" {
				return link.VFKnobs{VLAN: &vlan}, nil
			}
			_, err := fmt.Sscanf(t, "%d qos %d %s", &vlan.ID, &vlan.QoS, &vlan.Proto)
			return link.VFKnobs{VLAN: &vlan}, err
		},
	}
	ratesKnob = knob{"rates",
		func(v link.VFKnobs) string {
			if v.Rates == nil {
				return ""
			}
			return fmt.Sprintf("%d-%d Mbit/s", v.Rates.Min, v.Rates.Max)
		},
		func(t string) (link.VFKnobs, error) {
			var r link.Rates
			_, err := fmt.Sscanf(t, "%d-%d Mbit/s", &r.Min, &r.Max)
			return link.VFKnobs{Rates: &r}, err
		},
	}
	spoofKnob = knob{"spoof check",
		func(v link.VFKnobs) string { return formatSwitch(v.SpoofCheck) },
		func(t string) (link.VFKnobs, error) { return link.VFKnobs{SpoofCheck: new(t == "on")}, nil },
	}
	trustKnob = knob{"trust",
		func(v link.VFKnobs) string { return formatSwitch(v.Trust) },
		func(t string) (link.VFKnobs, error) { return link.VFKnobs{Trust: new(t == "on")}, nil },
	}
	stateKnob = knob{"link state",
		func(v link.VFKnobs) string {
			if v.LinkState == nil {
				return ""
			}
			return v.LinkState.String()
		},
		func(t string) (link.VFKnobs, error) {
			for _, s := range []link.LinkState{link.Auto, link.Enable, link.Disable} {
				if s.String() == t {
					return link.VFKnobs{LinkState: &s}, nil
				}
			}
			return link.VFKnobs{}, fmt.Errorf("%q is not a link state", t)
		},
	}
)

func formatSwitch(b *bool) string {
	switch {
	case b == nil:
		return ""
	case *b:
		return "on"
	}
	return "off"
}

func formatGUID(v link.VFKnobs) string {
	if v.NodeGUID == nil || v.PortGUID == nil || *v.NodeGUID != *v.PortGUID {
		return ""
	}
	return net.HardwareAddr(binary.BigEndian.AppendUint64(nil, *v.NodeGUID)).String()
}

// buildSetting returns the setting of a knob for one VF.
func (n knob) buildSetting(pf *inventory.PF, number int, wanted string) setting {
	return setting{
		what: formatVF(number) + " " + n.name, wanted: wanted,
		get: func(k *Kernel) (string, error) {
			v, err := k.ReadVF(pf.Name(), number)
			if errors.Is(err, link.ErrNotFound) {
				return "", nil
			}
			return n.text(v), err
		},
		set: func(k *Kernel, to string) error {
			v, err := n.read(to)
			if err != nil {
				return err
			}
			return k.SetVF(pf.Name(), number, v)
		},
	}
}

// planKnobs returns the settings of a policy for one VF; without a policy, only those that
// every VF needs.
func planKnobs(pf *inventory.PF, number int, p *config.Policy) (all []setting) {
	if pf.Link == inventory.InfiniBand {
		all = append(all, stateKnob.buildSetting(pf, number, link.Auto.String())) // mlx5 starts with "disable"
	}
	if p == nil {
		return all
	}
	if pf.Link != inventory.InfiniBand {
		vlan := link.VFKnobs{VLAN: &link.VLAN{ID: p.VLAN, QoS: p.QoS, Proto: p.Proto}}
		all = append(all, acceptUnknown(vlanKnob.buildSetting(pf, number, vlanKnob.text(vlan)), "none"))
	}
	if p.SpoofCheck != nil {
		all = append(all, spoofKnob.buildSetting(pf, number, formatSwitch(p.SpoofCheck)))
	}
	if p.Trust != nil {
		all = append(all, trustKnob.buildSetting(pf, number, formatSwitch(p.Trust)))
	}
	return all
}

// acceptUnknown makes a setting accept an unknown value as none: a driver that does not
// report VLANs or rates has none to remove.
func acceptUnknown(s setting, none string) setting {
	s.reached = func(found string) bool { return found == s.wanted || found == "" && s.wanted == none }
	return s
}

// planRates returns the setting of the rates, which is applied when the PF is up: some cards
// need the speed of their link.
func planRates(pf *inventory.PF, number int, p *config.Policy) setting {
	wanted := ratesKnob.text(link.VFKnobs{Rates: &link.Rates{Min: p.MinRate, Max: p.MaxRate}})
	s := acceptUnknown(ratesKnob.buildSetting(pf, number, wanted), "0-0 Mbit/s")
	set := s.set
	s.set = func(k *Kernel, to string) error {
		running := k.isRunning(pf) // read first: the link may come up right after the failure
		err := set(k, to)
		if !errors.Is(err, unix.EINVAL) || running {
			return err
		}
		if late := k.waitUntil("the link of "+pf.Name(), func() bool { return k.isRunning(pf) }); late != nil {
			return fmt.Errorf("%w; %w", err, late)
		}
		return set(k, to)
	}
	return s
}

// planIdentity returns the setting of a VF's MAC or GUID. It binds a VF again whose driver
// has already read another one.
func planIdentity(pf *inventory.PF, number int, node string) setting {
	s := macKnob.buildSetting(pf, number, DeriveMAC(node, pf.PCI, number).String())
	if pf.Link == inventory.InfiniBand {
		s = guidKnob.buildSetting(pf, number, deriveGUID(node, pf.PCI, number).String())
	}
	set := s.set
	s.set = func(k *Kernel, to string) error {
		if err := set(k, to); err != nil {
			return err
		}
		vf := k.findVF(pf, number)
		if vf == "" || !k.isBound(vf) {
			return nil
		}
		err := k.write(k.devicePath(vf, "driver/unbind"), vf)
		if err != nil && !errors.Is(err, unix.ENODEV) {
			return err
		}
		return k.write(k.Sys+"/bus/pci/drivers_probe", vf)
	}
	return s
}
