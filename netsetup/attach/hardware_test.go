// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"

	"github.com/gojail/gojail/netsetup/link"
)

// newStandIns returns operations that find stand-ins by their alias.
func newStandIns(knobs string) hardware {
	return hardware{
		find: func(ns *link.Namespace, pci string) (link.Link, error) {
			handle, err := openHandleIn(ns)
			if err != nil {
				return link.Link{}, err
			}
			defer handle.Close()
			all, err := handle.LinkList()
			if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
				return link.Link{}, err
			}
			for _, l := range all {
				if l.Attrs().Alias == pci {
					found, err := ns.FindByIndex(l.Attrs().Index)
					found.PCI = pci
					return found, err
				}
			}
			return link.Link{}, fmt.Errorf("find stand-in %s: %w", pci, link.ErrNotFound)
		},
		readVF: func(_ *link.Namespace, pf, vf int) (link.VFKnobs, error) { return loadKnobs(knobs, pf, vf) },
		setVF: func(_ *link.Namespace, pf, vf int, want link.VFKnobs) error {
			k, err := loadKnobs(knobs, pf, vf)
			if err != nil {
				return err
			}
			return saveKnobs(knobs, pf, vf, mergeKnobs(k, want))
		},
	}
}

func mergeKnobs(k, want link.VFKnobs) link.VFKnobs {
	for _, one := range want.Split() {
		switch {
		case one.VLAN != nil:
			k.VLAN = one.VLAN
		case one.MAC != nil:
			k.MAC = one.MAC
		case one.Rates != nil:
			k.Rates = one.Rates
		case one.SpoofCheck != nil:
			k.SpoofCheck = one.SpoofCheck
		case one.Trust != nil:
			k.Trust = one.Trust
		case one.LinkState != nil:
			k.LinkState = one.LinkState
		case one.PortGUID != nil:
			k.PortGUID = one.PortGUID
		case one.NodeGUID != nil:
			k.NodeGUID = one.NodeGUID
		}
	}
	return k
}

func knobsFile(dir string, pf, vf int) string {
	return filepath.Join(dir, fmt.Sprintf("%d-%d", pf, vf))
}

func loadKnobs(dir string, pf, vf int) (k link.VFKnobs, err error) {
	text, err := os.ReadFile(knobsFile(dir, pf, vf))
	if err != nil {
		return k, err
	}
	return k, json.Unmarshal(text, &k)
}

func saveKnobs(dir string, pf, vf int, k link.VFKnobs) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	path := knobsFile(dir, pf, vf)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
