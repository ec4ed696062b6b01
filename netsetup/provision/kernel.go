// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
)

// ErrHangs: a write to sysfs did not come back. The card's firmware hangs; the
// thread that writes cannot be ended, and the process may stay behind as a zombie.
var errHangs = errors.New("does not come back")

// Kernel is how a node is changed. Tests replace its functions.
type Kernel struct {
	inventory.Roots
	Modprobe string        // where modprobe's options lie: /etc/modprobe.d
	Patience time.Duration // for one write, and for what it makes to be there

	Write       func(path, text string) error                          // to sysfs
	VF          func(pf string, number int) (link.VFKnobs, error)      // what a PF keeps for a VF
	SetVF       func(pf string, number int, change link.VFKnobs) error // the fields that are not nil
	SetRDMAMode func(mode string) error
}

// Host is the kernel of this node, as the network namespace of the caller, which
// is the node's own one, shows it. Close the namespace after use.
func Host() (*Kernel, *link.Namespace, error) {
	self, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, nil, fmt.Errorf("open the node's network namespace: %w; is /proc mounted?", err)
	}
	defer self.Close()
	ns, err := link.Open(int(self.Fd()))
	if err != nil {
		return nil, nil, err
	}
	k := &Kernel{Roots: inventory.Host, Modprobe: "/etc/modprobe.d", Patience: 2 * time.Minute, SetRDMAMode: ns.SetRDMAMode}
	k.Write = func(path, text string) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Close())
	}
	k.VF = func(pf string, number int) (link.VFKnobs, error) {
		l, err := ns.ByName(pf)
		if err != nil {
			return link.VFKnobs{}, err
		}
		return link.ReadVF(ns, l.Index, number)
	}
	k.SetVF = func(pf string, number int, change link.VFKnobs) error {
		l, err := ns.ByName(pf)
		if err != nil {
			return err
		}
		return link.SetVF(ns, l.Index, number, change)
	}
	return k, ns, nil
}

// AltNames adds to an inventory the alternative names of PFs, which sysfs has not got.
func AltNames(inv *inventory.Inventory, ns *link.Namespace) error {
	links, err := ns.Links()
	if err != nil {
		return err
	}
	for _, l := range links {
		if pf := inv.PF(l.Name); pf != nil {
			pf.AltNames = l.AltNames
		}
	}
	return nil
}

// write gives up on a write after a while, with ErrHangs.
func (k *Kernel) write(path, text string) error {
	done := make(chan error, 1)
	go func() { done <- k.Write(path, text) }()
	timer := time.NewTimer(k.Patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("write %q to %s %w after %v; see dmesg, and reset the card or power-cycle the node", text, path, errHangs, k.Patience)
	}
}

// wait polls until something is so.
func (k *Kernel) wait(what string, so func() bool) error {
	pause := time.Millisecond
	for end := time.Now().Add(k.Patience); !so(); pause = min(2*pause, 100*time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%s has not come within %v; see dmesg", what, k.Patience)
		}
		time.Sleep(pause)
	}
	return nil
}

func (k *Kernel) read(path string) (string, error) {
	text, err := os.ReadFile(path)
	return strings.TrimSpace(string(text)), err
}

// device is a file of a PCI device.
func (k *Kernel) device(pci, name string) string {
	return filepath.Join(k.Sys, "bus/pci/devices", pci, name)
}

// vf is the PCI address of a VF, "" if there is none.
func (k *Kernel) vf(pf *inventory.PF, number int) string {
	target, err := os.Readlink(k.device(pf.PCI, "virtfn"+strconv.Itoa(number)))
	if err != nil {
		return ""
	}
	if _, err := os.Stat(k.device(filepath.Base(target), "physfn")); err != nil {
		return ""
	}
	return filepath.Base(target)
}

func (k *Kernel) bound(pci string) bool {
	_, err := os.Lstat(k.device(pci, "driver"))
	return err == nil
}

// has says whether a PCI device has something of a class: "net", "infiniband".
func (k *Kernel) has(pci, class string) bool {
	entries, _ := os.ReadDir(k.device(pci, class))
	return pci != "" && len(entries) > 0
}
