// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/nhc"
	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
	"github.com/gojail/gojail/netsetup/provision"
)

// jobDevices are the devices that jobs have, by the journals of their VFs. A journal has the
// names that the devices have on the node; it is written before they leave, and removed after
// they have come back.
type jobDevices struct {
	h *check.Host
	s *check.Settings
}

// listHeldVFs returns the VFs that jobs have, and those in quarantine.
func listHeldVFs(h *check.Host, s *check.Settings) ([]attach.HeldVF, error) {
	return attach.ListHeld(stateOfVFs(h, s))
}

func stateOfVFs(h *check.Host, s *check.Settings) string {
	return attach.StateDir(newJailNode(h, s).State)
}

// HaveInterface reports whether a job has the network interface, or it has come back.
func (d jobDevices) HaveInterface(name string, exists func() bool) (bool, error) {
	return d.have(func(vf attach.HeldVF) bool { return vf.Interface == name }, exists)
}

// HaveRDMA reports whether a job has the RDMA device, or it has come back.
func (d jobDevices) HaveRDMA(name string, exists func() bool) (bool, error) {
	return d.have(func(vf attach.HeldVF) bool { return slices.Contains(vf.RDMA, name) }, exists)
}

// have looks at the journals, then at the device, and once more at both: a job that gets or
// returns the device between two looks is seen by one of them. A device in quarantine is a
// Remark, since the check vf-quarantine decides about it.
func (d jobDevices) have(isDevice func(attach.HeldVF) bool, exists func() bool) (bool, error) {
	for range 2 {
		held, err := listHeldVFs(d.h, d.s)
		if err != nil {
			return false, err
		}
		if i := slices.IndexFunc(held, func(vf attach.HeldVF) bool { return isDevice(vf) && d.isThere(vf) }); i >= 0 {
			if held[i].Quarantined != "" {
				return false, nhc.Remark(fmt.Sprintf("VF %s is in quarantine", held[i].PCI))
			}
			return true, nil
		}
		if exists() {
			return true, nil
		}
		if i := slices.IndexFunc(held, func(vf attach.HeldVF) bool { return vf.Job == "" }); i >= 0 {
			return false, errors.New("the journal of VF " + held[i].PCI + " is damaged")
		}
	}
	return false, nil
}

// isThere reports whether a job of this boot has the VF, and the card still has it.
func (d jobDevices) isThere(vf attach.HeldVF) bool {
	boot, err := procfs.ReadBootID(d.h.Roots.Proc)
	return (err != nil || vf.Boot == boot) && mayExist(filepath.Join(d.h.Roots.Sys, "bus/pci/devices", vf.PCI))
}

// LeaveDown reports whether an RDMA device of the node may be down: it belongs to a VF or whole card that a job
// has (shared mode), or to one of a policy whose interface is down until a job gets it.
func (d jobDevices) LeaveDown(rdma string) bool {
	path, err := filepath.EvalSymlinks(filepath.Join(d.h.Roots.Sys, "class/infiniband", rdma, "device"))
	if err != nil {
		return false
	}
	pci := filepath.Base(path)
	held, err := listHeldVFs(d.h, d.s)
	if err == nil && slices.ContainsFunc(held, func(vf attach.HeldVF) bool {
		return vf.PCI == pci && vf.Quarantined == "" && d.isThere(vf)
	}) {
		return true
	}
	return isSetDown(path) && d.isOfPolicy(pci)
}

// isSetDown reports whether a device has a network interface, and none is set up (IFF_UP).
func isSetDown(device string) bool {
	files := findMatches(device, "net/*/flags")
	return len(files) > 0 && !slices.ContainsFunc(files, func(path string) bool {
		text, _ := readSysText(path, "")
		flags, err := strconv.ParseUint(text, 0, 32)
		return err != nil || flags&unix.IFF_UP != 0
	})
}

// isOfPolicy reports whether a policy of network.toml gives the VF or card to jobs.
func (d jobDevices) isOfPolicy(pci string) bool {
	cfg, err := config.Load(d.s.Network.Config, d.h.Node)
	if err != nil {
		return false
	}
	inv, err := readInventory(d.h, d.s)
	if err != nil {
		return false
	}
	cards, _, _ := policy.FindCards(cfg, inv)
	return slices.ContainsFunc(cards, func(c policy.Card) bool {
		return slices.ContainsFunc(c.Policies, func(p *config.Policy) bool {
			return slices.ContainsFunc(c.ListFunctions(p),
				func(vf *inventory.VF) bool { return vf != nil && vf.PCI == pci })
		})
	})
}

// readInventory reads the node's cards, with all names by which policies select them.
func readInventory(h *check.Host, s *check.Settings) (*inventory.Inventory, error) {
	roots := inventory.Roots{Sys: h.Roots.Sys, Proc: h.Roots.Proc, Dev: h.Roots.Dev}
	var inv *inventory.Inventory
	err, inTime := deadline.CallFor(namesTime, func() (err error) {
		_, names, err := provision.OpenHost()
		if err == nil {
			defer names.Close()
		}
		// Without the namespace, alternative names are missing.
		inv, err = attach.ReadInventory(roots, names, stateOfVFs(h, s))
		return err
	})
	if !inTime {
		return nil, fmt.Errorf("the kernel does not list the network interfaces within %v", namesTime)
	}
	return inv, err
}

// namesTime is the time for the kernel to list interfaces. A driver may hold its lock, as that of a card whose VFs are
// being made does: that is no fault of the cards.
const namesTime = time.Second
