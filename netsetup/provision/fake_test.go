// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/fake/fakesys"
	"github.com/gojail/gojail/netsetup/link"
)

// fake is a node without faults: its sysfs, and what PFs hold for their VFs.
type fake struct {
	*fakesys.Tree
	kernel   *Kernel
	knobs    map[string]link.VFKnobs // "ens1f0 3"
	mutex    sync.Mutex
	log      []string
	refuse   map[string]error // "ens1f0 3 trust": the driver's answer
	firmware string           // what mlxconfig says
	links    []link.Link      // what the kernel says about interfaces, for Check
	rdma     error            // what setting the RDMA mode ends with
}

func newFake(t *testing.T, cards ...fakesys.Card) *fake {
	t.Helper()
	f := &fake{Tree: fakesys.New(t), knobs: map[string]link.VFKnobs{}, refuse: map[string]error{}}
	for _, c := range cards {
		f.AddCard(c)
	}
	f.kernel = &Kernel{Roots: f.Roots(), Modprobe: f.Modprobe, Patience: time.Minute, Write: f.write, ReadVF: f.readVF, SetVF: f.setVF}
	f.kernel.SetRDMAMode = func(mode string) error {
		if f.rdma != nil {
			return f.rdma
		}
		f.recordChange("rdma " + mode)
		f.LoadModule("ib_core", "netns_mode="+map[string]string{"shared": "Y", "exclusive": "N"}[mode])
		return nil
	}
	return f
}

func (f *fake) write(path, text string) error {
	f.recordChange(filepath.Base(path) + " " + text)
	err := f.Write(path, text)
	if err == nil && filepath.Base(path) == "sriov_numvfs" {
		for key := range f.knobs { // a VF's knobs go with it
			if pf, number, _ := strings.Cut(key, " "); !f.HasVF(pf, int(number[0]-'0')) {
				delete(f.knobs, key)
			}
		}
	}
	return err
}

// listChanges returns the changes in order.
func (f *fake) listChanges() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Clone(f.log)
}

func (f *fake) recordChange(line string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.log = append(f.log, line)
}

func (f *fake) readVF(pf string, number int) (link.VFKnobs, error) {
	key := fmt.Sprintf("%s %d", pf, number)
	if !f.HasVF(pf, number) {
		return link.VFKnobs{}, fmt.Errorf("VF %d: %w", number, link.ErrNotFound)
	}
	if _, known := f.knobs[key]; !known {
		f.knobs[key] = link.VFKnobs{MAC: make(net.HardwareAddr, 6), VLAN: &link.VLAN{Proto: link.Dot1Q}, Rates: &link.Rates{},
			SpoofCheck: new(true), Trust: new(false), LinkState: new(link.Disable), NodeGUID: new(uint64(0)), PortGUID: new(uint64(0))}
	}
	return f.knobs[key], nil
}

func (f *fake) setVF(pf string, number int, change link.VFKnobs) error {
	v, err := f.readVF(pf, number)
	if err != nil {
		return err
	}
	set := func(name string, text string) error {
		key := fmt.Sprintf("%s %d %s", pf, number, name)
		f.recordChange(key + " " + text)
		return f.refuse[key]
	}
	switch {
	case change.MAC != nil:
		v.MAC, err = change.MAC, set("MAC", change.MAC.String())
	case change.NodeGUID != nil:
		v.NodeGUID, v.PortGUID, err = change.NodeGUID, change.PortGUID, set("GUID", formatGUID(change))
	case change.VLAN != nil:
		v.VLAN, err = change.VLAN, set("VLAN", vlanKnob.text(change))
	case change.Rates != nil:
		v.Rates, err = change.Rates, set("rates", ratesKnob.text(change))
	case change.SpoofCheck != nil:
		v.SpoofCheck, err = change.SpoofCheck, set("spoof", formatSwitch(change.SpoofCheck))
	case change.Trust != nil:
		v.Trust, err = change.Trust, set("trust", formatSwitch(change.Trust))
	case change.LinkState != nil:
		v.LinkState, err = change.LinkState, set("state", change.LinkState.String())
	}
	if err == nil {
		f.knobs[fmt.Sprintf("%s %d", pf, number)] = v
	}
	return err
}

// observePlan returns the plan of a configuration, with the needed steps only.
func (f *fake) observePlan(t *testing.T, cfg *config.Config, used map[string]string) *Plan {
	t.Helper()
	p, err := MakePlan(cfg, f.ReadInventory(), Held{Jobs: used})
	require.NoError(t, err)
	require.NoError(t, p.Observe(f.kernel))
	return p
}

// apply does what `gojail vf apply` does, and returns the steps that changed something.
func (f *fake) apply(t *testing.T, cfg *config.Config) (steps []string, err error) {
	t.Helper()
	f.log = nil
	p, err := MakePlan(cfg, f.ReadInventory(), Held{})
	require.NoError(t, err)
	err = Apply(p, f.kernel, func(s *Step) { steps = append(steps, s.String()) })
	return steps, err
}

func formatLines(p *Plan) string {
	var all []string
	for _, s := range p.Steps {
		all = append(all, s.String())
	}
	return strings.Join(all, "\n")
}

var (
	site, on       = fakesys.NewConfig, fakesys.SelectPFs
	ens1f0, ens2f0 = fakesys.Ens1f0, fakesys.Ens2f0
)
