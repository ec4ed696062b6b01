// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/link"
)

// hardware is where a VF is and what its PF decides about it: the one thing that
// tests replace, by macvlan interfaces that stand in for VFs. What is nil is done
// with real VFs.
type hardware struct {
	find      func(ns *link.Namespace, pci string) (link.Link, error) // a VF's or PF's interface; link.ErrNotFound
	readVF    func(ns *link.Namespace, pf, vf int) (link.VFKnobs, error)
	setVF     func(ns *link.Namespace, pf, vf int, want link.VFKnobs) error
	findRDMA  func(ns *link.Namespace, pci string) (string, error) // name; link.ErrNotFound
	rdmaFiles func(ns *link.Namespace, name string) ([]link.CharDevice, error)
	findGID   func(ns *link.Namespace, device string, address netip.Addr) (int, error) // RoCE v2; -1: not there
	moveRDMA  func(from *link.Namespace, name string, to *link.Namespace) error
}

// complete puts the real thing where there is none.
func (h hardware) complete(proc string) hardware {
	if h.find == nil {
		h.find = (*link.Namespace).ByPCI
	}
	if h.readVF == nil {
		h.readVF = link.ReadVF
	}
	if h.setVF == nil {
		h.setVF = link.SetVF
	}
	if h.findRDMA == nil {
		h.findRDMA = func(ns *link.Namespace, pci string) (name string, err error) {
			err = inSysfs(proc, ns, func(sys string) error { name, err = link.RDMAByPCI(sys, pci); return err })
			return name, err
		}
	}
	if h.rdmaFiles == nil {
		h.rdmaFiles = func(ns *link.Namespace, name string) (files []link.CharDevice, err error) {
			err = inSysfs(proc, ns, func(sys string) error { files, err = link.RDMAFiles(sys, name); return err })
			return files, err
		}
	}
	if h.findGID == nil {
		h.findGID = realFindGID(proc)
	}
	if h.moveRDMA == nil {
		h.moveRDMA = link.MoveRDMA
	}
	return h
}

// inSysfs shows a sysfs of the namespace to f.
func inSysfs(proc string, ns *link.Namespace, f func(sys string) error) error {
	root, err := ns.Sysfs()
	if err != nil {
		return err
	}
	defer unix.Close(root)
	return f(fmt.Sprintf("%s/self/fd/%d", proc, root))
}
