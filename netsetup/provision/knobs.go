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

// knob is one property of a VF that its PF controls, or both of its GUIDs.
type knob struct {
	name string
	only func(link.VFKnobs) link.VFKnobs // returns the property without the others
	text func(link.VFKnobs) string       // "": not reported by the driver
}

var (
	macKnob = knob{"MAC", func(v link.VFKnobs) link.VFKnobs { return link.VFKnobs{MAC: v.MAC} },
		func(v link.VFKnobs) string { return v.MAC.String() }}
	guidKnob = knob{"GUID",
		func(v link.VFKnobs) link.VFKnobs {
			return link.VFKnobs{NodeGUID: v.NodeGUID, PortGUID: v.PortGUID}
		}, formatGUID}
	vlanKnob  = knob{"VLAN", onlyVLAN, formatVLAN}
	ratesKnob = knob{"rates", func(v link.VFKnobs) link.VFKnobs { return link.VFKnobs{Rates: v.Rates} }, formatRates}
	spoofKnob = knob{"spoof check", func(v link.VFKnobs) link.VFKnobs { return link.VFKnobs{SpoofCheck: v.SpoofCheck} },
		func(v link.VFKnobs) string { return formatSwitch(v.SpoofCheck) }}
	trustKnob = knob{"trust", func(v link.VFKnobs) link.VFKnobs { return link.VFKnobs{Trust: v.Trust} },
		func(v link.VFKnobs) string { return formatSwitch(v.Trust) }}
	stateKnob = knob{"link state", func(v link.VFKnobs) link.VFKnobs { return link.VFKnobs{LinkState: v.LinkState} },
		formatState}
)

// onlyVLAN returns the VLAN alone. No VLAN is expressed as ID 0 of 802.1Q, which every driver accepts.
func onlyVLAN(v link.VFKnobs) link.VFKnobs {
	if v.VLAN != nil && v.VLAN.ID == 0 {
		return link.VFKnobs{VLAN: &link.VLAN{Proto: link.Dot1Q}}
	}
	return link.VFKnobs{VLAN: v.VLAN}
}

func formatVLAN(v link.VFKnobs) string {
	switch {
	case v.VLAN == nil:
		return ""
	case v.VLAN.ID == 0:
		return "none"
	}
	return fmt.Sprintf("%d qos %d %s", v.VLAN.ID, v.VLAN.QoS, v.VLAN.Proto)
}

func formatRates(v link.VFKnobs) string {
	if v.Rates == nil {
		return ""
	}
	return fmt.Sprintf("%d-%d Mbit/s", v.Rates.Min, v.Rates.Max)
}

func formatState(v link.VFKnobs) string {
	if v.LinkState == nil {
		return ""
	}
	return v.LinkState.String()
}

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
func (n knob) buildSetting(pf *inventory.PF, number int, wanted link.VFKnobs) setting {
	values := map[string]link.VFKnobs{n.text(wanted): n.only(wanted)} // get adds the found value, to restore it
	return setting{
		what: formatVF(number) + " " + n.name, wanted: n.text(wanted),
		get: func(k *Kernel) (string, error) {
			v, err := k.ReadVF(pf.Name(), number)
			if errors.Is(err, link.ErrNotFound) {
				return "", nil
			}
			text := n.text(v)
			if _, known := values[text]; !known {
				values[text] = n.only(v)
			}
			return text, err
		},
		set: func(k *Kernel, to string) error {
			return k.SetVF(pf.Name(), number, values[to])
		},
	}
}

// planKnobs returns the settings of a policy for one VF; without a policy, only those that
// every VF needs.
func planKnobs(pf *inventory.PF, number int, p *config.Policy) (all []setting) {
	if pf.Link == inventory.InfiniBand {
		// mlx5 starts with "disable".
		all = append(all, stateKnob.buildSetting(pf, number, link.VFKnobs{LinkState: new(link.Auto)}))
	}
	if p == nil {
		return all
	}
	if pf.Link != inventory.InfiniBand {
		vlan := link.VFKnobs{VLAN: &link.VLAN{ID: p.VLAN, QoS: p.QoS, Proto: p.Proto}}
		all = append(all, acceptUnknown(vlanKnob.buildSetting(pf, number, vlan), "none"))
	}
	if p.SpoofCheck != nil {
		all = append(all, spoofKnob.buildSetting(pf, number, link.VFKnobs{SpoofCheck: p.SpoofCheck}))
	}
	if p.Trust != nil {
		all = append(all, trustKnob.buildSetting(pf, number, link.VFKnobs{Trust: p.Trust}))
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
	wanted := link.VFKnobs{Rates: &link.Rates{Min: p.MinRate, Max: p.MaxRate}}
	s := acceptUnknown(ratesKnob.buildSetting(pf, number, wanted), "0-0 Mbit/s")
	set := s.set
	s.set = func(k *Kernel, to string) error {
		running := k.isRunning(pf) // read first: the link may come up right after the failure
		err := set(k, to)
		if !errors.Is(err, unix.EINVAL) || running {
			return err
		}
		if waitErr := k.waitUntil("the link of "+pf.Name(), func() bool { return k.isRunning(pf) }); waitErr != nil {
			return fmt.Errorf("%w; %w", err, waitErr)
		}
		return set(k, to)
	}
	return s
}

// planIdentity returns the setting of a VF's MAC or GUID. It binds the VF's driver again if that has already read
// another one.
func planIdentity(pf *inventory.PF, number int, node string) setting {
	s := macKnob.buildSetting(pf, number, link.VFKnobs{MAC: DeriveMAC(node, pf.PCI, number)})
	if pf.Link == inventory.InfiniBand {
		guid := binary.BigEndian.Uint64(deriveGUID(node, pf.PCI, number))
		s = guidKnob.buildSetting(pf, number, link.VFKnobs{NodeGUID: &guid, PortGUID: &guid})
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
