// SPDX-License-Identifier: Apache-2.0

package fakesys

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Write writes to sysfs and does what the kernel would do.
func (t *Tree) Write(path, text string) error {
	name := filepath.Base(path)
	hang, err := t.Hang[name], t.Fail[name]
	if hang != nil {
		<-hang
		return &os.PathError{Op: "write", Path: path, Err: unix.EIO}
	}
	if err != nil && text != "0" {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	if err := t.handleWrite(path, strings.TrimSpace(text)); err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

func (t *Tree) handleWrite(path, text string) error {
	switch filepath.Base(path) {
	case "sriov_numvfs":
		return t.setNumVFs(path, text)
	case "drivers_probe":
		return t.probeDriver(text)
	case "unbind":
		t.MoveToJob(text)
		return os.Remove(t.DevicePath(text) + "/driver")
	}
	return os.WriteFile(path, []byte(text+"\n"), 0o644)
}

// setNumVFs follows sriov_numvfs_store (drivers/pci/iov.c): another number needs zero first.
func (t *Tree) setNumVFs(path, text string) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return err
	}
	c := t.cards[filepath.Base(dir)]
	before, _ := os.ReadFile(path)
	wanted, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return unix.EINVAL
	case wanted > c.TotalVFs:
		return unix.ERANGE
	case strings.TrimSpace(string(before)) == text:
		return nil
	case wanted != 0 && strings.TrimSpace(string(before)) != "0":
		return unix.EBUSY
	}
	t.removeVFs(c)
	probes, _ := os.ReadFile(dir + "/sriov_drivers_autoprobe")
	for i := range wanted {
		t.addVF(c, i)
		if strings.TrimSpace(string(probes)) == "1" {
			t.bindVF(c, i)
		}
	}
	return os.WriteFile(path, []byte(text+"\n"), 0o644)
}

// probeDriver binds a VF's driver unless its card's autoprobe is off (pci_device_can_probe).
func (t *Tree) probeDriver(pci string) error {
	for _, c := range t.cards {
		for i := range c.TotalVFs {
			if c.VFAddress(i) != pci {
				continue
			}
			probes, _ := os.ReadFile(t.DevicePath(c.PCI) + "/sriov_drivers_autoprobe")
			if _, err := os.Lstat(t.DevicePath(pci) + "/driver"); err != nil &&
				strings.TrimSpace(string(probes)) == "1" {
				t.bindVF(c, i)
			}
			return nil // regardless of the result, like the kernel
		}
	}
	return unix.ENODEV
}
