// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/inventory"
)

// planAutoprobe returns the setting by which the kernel binds drivers to new VFs, or does not.
func planAutoprobe(pf *inventory.PF, on bool) setting {
	file := "sriov_drivers_autoprobe"
	s := setting{what: "drivers bind", wanted: "0", undo: "1"}
	if on {
		s.wanted = "1"
	}
	s.get = func(k *Kernel) (string, error) { return k.read(k.devicePath(pf.PCI, file)) }
	s.set = func(k *Kernel, to string) error { return k.write(k.devicePath(pf.PCI, file), to) }
	return s
}

// planNumVFs returns the setting of a card's number of VFs. The kernel changes one number to
// another only through zero.
func planNumVFs(pf *inventory.PF, n int) setting {
	const file = "sriov_numvfs"
	return setting{
		what: "VFs", wanted: strconv.Itoa(n), undo: "0", makes: true,
		allowed: func(k *Kernel) error { return k.checkUnused(pf) },
		get:     func(k *Kernel) (string, error) { return k.read(k.devicePath(pf.PCI, file)) },
		set: func(k *Kernel, to string) error {
			before, err := k.read(k.devicePath(pf.PCI, file))
			if err == nil && before != "0" {
				err = k.write(k.devicePath(pf.PCI, file), "0")
			}
			if err == nil && to != "0" {
				err = k.write(k.devicePath(pf.PCI, file), to)
			}
			if err != nil {
				return explainNumVFs(err, pf)
			}
			wanted, err := strconv.Atoi(to)
			if err != nil {
				return err
			}
			return k.waitUntil(fmt.Sprintf("VF %d of %s", wanted-1, pf), func() bool {
				return wanted == 0 || k.findVF(pf, wanted-1) != ""
			})
		},
	}
}

// checkUnused fails if a VF was given to a job since the plan was made.
func (k *Kernel) checkUnused(pf *inventory.PF) error {
	for number := range pf.TotalVFs {
		if vf := k.findVF(pf, number); vf != "" && k.isBound(vf) && !k.has(vf, "net") {
			return fmt.Errorf("VF %d (%s) was moved to another network namespace meanwhile; drain the node first",
				number, vf)
		}
	}
	return nil
}

// explainNumVFs adds the remedy to an error of sriov_numvfs.
func explainNumVFs(err error, pf *inventory.PF) error {
	do := ""
	switch {
	case errors.Is(err, unix.ENOMEM), errors.Is(err, unix.ENOSPC):
		do = "; the PCI bridge has no room for the VFs: boot with pci=realloc"
	case errors.Is(err, fs.ErrNotExist):
		do =
			fmt.Sprintf("; SR-IOV is off: switch it on in the BIOS, and in the card (mlxconfig -d %s set "+
				"SRIOV_EN=1), then reboot", pf.PCI)
	case errors.Is(err, unix.EBUSY):
		do = "; VFs were changed at the same time: run it again"
	case errors.Is(err, unix.ERANGE), errors.Is(err, unix.EINVAL):
		do = fmt.Sprintf("; the card has at most %d", pf.TotalVFs)
	case errors.Is(err, unix.EPERM):
		do = "; a VF belongs to a virtual machine: end that first"
	case errors.Is(err, unix.EIO):
		do = "; see dmesg for what the driver says"
	}
	return fmt.Errorf("%w%s", err, do)
}

// planDriver returns the setting that binds a VF to its driver. It waits for the network
// interface, and on InfiniBand for the RDMA device.
func planDriver(pf *inventory.PF, number int) setting {
	ready := func(k *Kernel) bool {
		vf := k.findVF(pf, number)
		return k.has(vf, "net") && (pf.Link != inventory.InfiniBand || k.has(vf, "infiniband"))
	}
	return setting{
		what: formatVF(number) + " driver", wanted: "bound",
		get: func(k *Kernel) (string, error) {
			vf := k.findVF(pf, number)
			if vf == "" || !k.isBound(vf) || !ready(k) {
				return "", nil
			}
			return "bound", nil
		},
		set: func(k *Kernel, _ string) error {
			vf := k.findVF(pf, number)
			if vf == "" {
				return fmt.Errorf("%s no longer has VF %d: it was changed at the same time; run it again", pf, number)
			}
			if err := k.write(filepath.Join(k.Sys, "bus/pci/drivers_probe"), vf); err != nil {
				return err
			}
			if err := k.waitUntil("the driver of "+vf, func() bool { return k.isBound(vf) }); err != nil {
				return fmt.Errorf("%w; load the VFs' driver (modprobe $(cat %s))", err, k.devicePath(vf, "modalias"))
			}
			return k.waitUntil("the interface of "+vf, func() bool { return ready(k) })
		},
	}
}

// planMTU returns the setting of the MTU of a PF (-1) or of one of its VFs.
func planMTU(pf *inventory.PF, number, mtu int) setting {
	file := func(k *Kernel) string {
		device := pf.PCI
		if number >= 0 {
			device = k.findVF(pf, number)
		}
		names, _ := os.ReadDir(k.devicePath(device, "net"))
		if device == "" || len(names) == 0 {
			return ""
		}
		return k.devicePath(device, "net/"+names[0].Name()+"/mtu")
	}
	return setting{
		what: formatVF(number) + " MTU", wanted: strconv.Itoa(mtu),
		get: func(k *Kernel) (string, error) {
			if f := file(k); f != "" {
				return k.read(f)
			}
			return "", nil
		},
		set: func(k *Kernel, to string) error {
			err := fs.ErrNotExist
			for try := 0; try < 3 && errors.Is(err, fs.ErrNotExist); try++ { // udev may rename the interface meanwhile
				f := file(k)
				if f == "" {
					return fmt.Errorf("%s of %s has no interface here", formatVF(number), pf)
				}
				err = k.write(f, to)
			}
			if errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("%w; the driver does not take that MTU", err)
			}
			return err
		},
	}
}

// planUp returns the setting of the PF's administrative state: VFs have no link while their
// PF is down.
func planUp(pf *inventory.PF) setting {
	return setting{
		what: "PF", wanted: "up",
		get: func(k *Kernel) (string, error) {
			flags, err := k.readFlags(pf)
			if err != nil || flags&unix.IFF_UP == 0 {
				return "down", err
			}
			return "up", nil
		},
		set: func(k *Kernel, to string) error {
			flags, err := k.readFlags(pf)
			if err != nil {
				return err
			}
			flags &^= unix.IFF_UP
			if to == "up" {
				flags |= unix.IFF_UP
			}
			return k.write(k.devicePath(pf.PCI, "net/"+pf.Name()+"/flags"), fmt.Sprintf("%#x", flags))
		},
	}
}

// isRunning reports whether a PF has a link.
func (k *Kernel) isRunning(pf *inventory.PF) bool {
	state, _ := k.read(k.devicePath(pf.PCI, "net/"+pf.Name()+"/operstate"))
	return state == "up"
}

func (k *Kernel) readFlags(pf *inventory.PF) (uint64, error) {
	file := k.devicePath(pf.PCI, "net/"+pf.Name()+"/flags")
	text, err := k.read(file)
	if err != nil {
		return 0, err
	}
	flags, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not a number", file, text)
	}
	return flags, nil
}
