// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// CharDevice is a device node below /dev.
type CharDevice struct {
	Path  string // path relative to /dev: "infiniband/uverbs3"
	Major uint32
	Minor uint32
}

// FindRDMA returns the names of the RDMA devices of a PCI device, in order. sys is a sysfs root of the
// namespace that has the devices, see MountSysfs. It fails with ErrNotFound if there is none.
func FindRDMA(sys, pci string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(sys, "bus/pci/devices", pci, "infiniband"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("find the RDMA device of PCI device %s: %w", pci, err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if names == nil {
		return nil, fmt.Errorf("find the RDMA device of PCI device %s: %w: it is in another network namespace, or its "+
			"driver does not support RDMA", pci, ErrNotFound)
	}
	return names, nil
}

// ListRDMAFiles returns the device nodes of an RDMA device: uverbsN, umadN and issmN, and rdma_cm, which all devices
// share. It must be called after the last move, because each move changes the numbers.
func ListRDMAFiles(sys, device string) ([]CharDevice, error) {
	var files []CharDevice
	for _, class := range []string{"infiniband_verbs", "infiniband_mad"} {
		dir := filepath.Join(sys, "class", class)
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("find the files of RDMA device %s: %w", device, err)
		}
		for _, e := range entries {
			owner, err := os.ReadFile(filepath.Join(dir, e.Name(), "ibdev"))
			if err != nil || strings.TrimSpace(string(owner)) != device {
				continue // class attributes such as abi_version have no ibdev
			}
			file, err := readCharDevice(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, fmt.Errorf("find the files of RDMA device %s: %w", device, err)
			}
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil,
			fmt.Errorf(
				"find the files of RDMA device %s: %w: load ib_uverbs (modprobe), or the device was removed meanwhile",
				device, ErrNotFound)
	}
	manager, err := readCharDevice(filepath.Join(sys, "class/misc/rdma_cm"))
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil // rdma_ucm is not loaded
	}
	return append(files, manager), err
}

func readCharDevice(dir string) (CharDevice, error) {
	d := CharDevice{Path: filepath.Join("infiniband", filepath.Base(dir))}
	text, err := os.ReadFile(filepath.Join(dir, "dev"))
	if err != nil {
		return d, err
	}
	if _, err := fmt.Sscanf(string(text), "%d:%d", &d.Major, &d.Minor); err != nil {
		return d, fmt.Errorf("%s/dev: %q is not MAJOR:MINOR", dir, strings.TrimSpace(string(text)))
	}
	return d, nil
}

// Number returns the device number for mknod(2).
func (d CharDevice) Number() uint64 { return unix.Mkdev(d.Major, d.Minor) }
