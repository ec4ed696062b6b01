// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/link"
)

// hardware are the operations on a VF and its PF that tests replace with macvlan interfaces
// as stand-ins for VFs. A nil field stands for the operation on real VFs.
type hardware struct {
	// returns the interface of a VF or PF; fails with link.ErrNotFound
	find          func(ns *link.Namespace, pci string) (link.Link, error)
	readVF        func(ns *link.Namespace, pf, vf int) (link.VFKnobs, error)
	setVF         func(ns *link.Namespace, pf, vf int, want link.VFKnobs) error
	findRDMA      func(ns *link.Namespace, pci string) ([]string, error) // returns the names, or link.ErrNotFound
	listRDMAFiles func(ns *link.Namespace, name string) ([]link.CharDevice, error)
	findGID       func(ns *link.Namespace, device string, address netip.Addr) (int, error) // RoCE v2; -1: not found
	moveRDMA      func(from *link.Namespace, name string, to *link.Namespace) error
}

// withDefaults replaces nil fields by the operations on real VFs.
func (h hardware) withDefaults(proc string) hardware {
	if h.find == nil {
		h.find = (*link.Namespace).FindByPCI
	}
	if h.readVF == nil {
		h.readVF = link.ReadVF
	}
	if h.setVF == nil {
		h.setVF = link.SetVF
	}
	if h.findRDMA == nil {
		h.findRDMA = func(ns *link.Namespace, pci string) (names []string, err error) {
			err = withSysfs(proc, ns, func(sys string) error { names, err = link.FindRDMA(sys, pci); return err })
			return names, err
		}
	}
	if h.listRDMAFiles == nil {
		h.listRDMAFiles = func(ns *link.Namespace, name string) (files []link.CharDevice, err error) {
			err = withSysfs(proc, ns, func(sys string) error { files, err = link.ListRDMAFiles(sys, name); return err })
			return files, err
		}
	}
	if h.findGID == nil {
		h.findGID = newFindGID(proc)
	}
	if h.moveRDMA == nil {
		h.moveRDMA = link.MoveRDMA
	}
	return h
}

// withSysfs calls f with the path of a sysfs of the namespace: a sysfs shows the devices of the namespace in which it
// was mounted. The path is that of a descriptor, because the mount is attached nowhere.
func withSysfs(proc string, ns *link.Namespace, f func(sys string) error) error {
	root, err := ns.MountSysfs()
	if err != nil {
		return err
	}
	defer unix.Close(root)
	return f(fmt.Sprintf("%s/self/fd/%d", proc, root))
}
