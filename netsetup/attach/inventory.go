// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"slices"

	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
)

// ReadInventory reads the node's devices, see the function. A negative Host stands for no namespace.
func (s *Site) ReadInventory() (*inventory.Inventory, error) {
	if s.Host < 0 {
		return ReadInventory(s.Roots, nil, s.State)
	}
	names, err := link.Open(s.Host)
	if err != nil {
		return nil, err
	}
	defer names.Close()
	return ReadInventory(s.Roots, names, s.State)
}

// ReadInventory reads the node's devices, with what sysfs does not show and policies select cards by: the alternative
// names of interfaces, and all names of an interface that a job has, from its journal. names is the node's namespace;
// without it, alternative names are missing. state is Site.State.
func ReadInventory(roots inventory.Roots, names *link.Namespace, state string) (*inventory.Inventory, error) {
	inv, err := inventory.Read(roots)
	if err != nil {
		return nil, err
	}
	var links []link.Link
	if names != nil {
		if links, err = names.ListLinks(); err != nil {
			return nil, err
		}
	}
	entries, _, err := store(state).readEntries() // a damaged journal has no names
	if err != nil {
		return nil, err
	}
	inv.ForEachInterface(func(pci string, i *inventory.Interface) {
		if l := slices.IndexFunc(links, func(l link.Link) bool { return l.Name == i.Name() }); l >= 0 {
			i.AltNames = links[l].AltNames
		}
		e := slices.IndexFunc(entries, func(e *entry) bool { return e.PCI == pci })
		// An interface may be back under a job's name, until it is swept.
		if i.Away = e >= 0; i.Away && entries[e].hasInterface() {
			was := append([]string{entries[e].Original.Name}, entries[e].Original.AltNames...)
			i.AltNames = append(i.AltNames, removeNames(was, append(i.Names, i.AltNames...))...)
		}
	})
	return inv, nil
}
