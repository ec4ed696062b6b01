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

	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
)

// errHangs means that a write to sysfs did not return: the card's firmware hangs. The
// writing thread cannot be ended, and the process may stay as a zombie.
var errHangs = errors.New("does not return")

// Kernel holds the functions that change a node. Tests replace them.
type Kernel struct {
	inventory.Roots
	Modprobe string        // directory of modprobe's configuration: /etc/modprobe.d
	Patience time.Duration // timeout of one write, and of the effects of it

	Write func(path, text string) error // writes to sysfs
	// returns the properties of a VF that its PF controls
	ReadVF      func(pf string, number int) (link.VFKnobs, error)
	SetVF       func(pf string, number int, change link.VFKnobs) error // sets the fields that are not nil
	SetRDMAMode func(mode string) error
}

// OpenHost returns the kernel of this node and its network namespace, which must be the
// caller's. The caller closes the namespace.
func OpenHost() (*Kernel, *link.Namespace, error) {
	self, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, nil, fmt.Errorf("open the node's network namespace: %w; check that /proc is mounted", err)
	}
	defer self.Close()
	ns, err := link.Open(int(self.Fd()))
	if err != nil {
		return nil, nil, err
	}
	k := &Kernel{Roots: inventory.Host, Modprobe: "/etc/modprobe.d", Patience: 2 * time.Minute,
		SetRDMAMode: ns.SetRDMAMode}
	k.Write = func(path, text string) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Close())
	}
	k.ReadVF = func(pf string, number int) (link.VFKnobs, error) {
		l, err := ns.FindByName(pf)
		if err != nil {
			return link.VFKnobs{}, err
		}
		return link.ReadVF(ns, l.Index, number)
	}
	k.SetVF = func(pf string, number int, change link.VFKnobs) error {
		l, err := ns.FindByName(pf)
		if err != nil {
			return err
		}
		return link.SetVF(ns, l.Index, number, change)
	}
	return k, ns, nil
}

// write writes to a file of sysfs, and fails with errHangs after the timeout.
func (k *Kernel) write(path, text string) error {
	err, inTime := deadline.CallFor(k.Patience, func() error { return k.Write(path, text) })
	if !inTime {
		return fmt.Errorf("write %q to %s %w after %v; see dmesg, and reset the card or power-cycle the node",
			text, path, errHangs, k.Patience)
	}
	return err
}

// waitUntil polls until isSo returns true, and fails after the timeout.
func (k *Kernel) waitUntil(what string, isSo func() bool) error {
	pause := time.Millisecond
	for end := time.Now().Add(k.Patience); !isSo(); pause = min(2*pause, 100*time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%s did not appear within %v; see dmesg", what, k.Patience)
		}
		time.Sleep(pause)
	}
	return nil
}

func (k *Kernel) read(path string) (string, error) {
	text, err := os.ReadFile(path)
	return strings.TrimSpace(string(text)), err
}

// devicePath returns the path of a file of a PCI device.
func (k *Kernel) devicePath(pci, name string) string {
	return filepath.Join(k.Sys, "bus/pci/devices", pci, name)
}

// findVF returns the PCI address of a VF, "" if there is none.
func (k *Kernel) findVF(pf *inventory.PF, number int) string {
	target, err := os.Readlink(k.devicePath(pf.PCI, "virtfn"+strconv.Itoa(number)))
	if err != nil {
		return ""
	}
	if _, err := os.Stat(k.devicePath(filepath.Base(target), "physfn")); err != nil {
		return ""
	}
	return filepath.Base(target)
}

func (k *Kernel) isBound(pci string) bool {
	_, err := os.Lstat(k.devicePath(pci, "driver"))
	return err == nil
}

// has reports whether a PCI device has an entry of a class: "net", "infiniband".
func (k *Kernel) has(pci, class string) bool {
	entries, _ := os.ReadDir(k.devicePath(pci, class))
	return pci != "" && len(entries) > 0
}
