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

// autoprobe is whether the kernel binds drivers to VFs of its own accord.
func autoprobe(pf *inventory.PF, on bool) setting {
	file := "sriov_drivers_autoprobe"
	s := setting{what: "drivers bind", wanted: "0", undo: "1"}
	if on {
		s.wanted = "1"
	}
	s.get = func(k *Kernel) (string, error) { return k.read(k.device(pf.PCI, file)) }
	s.set = func(k *Kernel, to string) error { return k.write(k.device(pf.PCI, file), to) }
	return s
}

// numVFs makes a card's VFs. Another number than none can only be reached from none.
func numVFs(pf *inventory.PF, n int) setting {
	const file = "sriov_numvfs"
	return setting{
		what: "VFs", wanted: strconv.Itoa(n), undo: "0", makes: true,
		allowed: func(k *Kernel) error { return k.nobodyHas(pf) },
		get:     func(k *Kernel) (string, error) { return k.read(k.device(pf.PCI, file)) },
		set: func(k *Kernel, to string) error {
			before, err := k.read(k.device(pf.PCI, file))
			if err == nil && before != "0" {
				err = k.write(k.device(pf.PCI, file), "0")
			}
			if err == nil && to != "0" {
				err = k.write(k.device(pf.PCI, file), to)
			}
			if err != nil {
				return explainNumVFs(err, pf)
			}
			wanted, err := strconv.Atoi(to)
			if err != nil {
				return err
			}
			return k.wait(fmt.Sprintf("VF %d of %s", wanted-1, pf), func() bool {
				return wanted == 0 || k.vf(pf, wanted-1) != ""
			})
		},
	}
}

// nobodyHas looks once more, since the plan is older: a VF that went to a job
// meanwhile must not be taken from it.
func (k *Kernel) nobodyHas(pf *inventory.PF) error {
	for number := range pf.TotalVFs {
		if vf := k.vf(pf, number); vf != "" && k.bound(vf) && !k.has(vf, "net") {
			return fmt.Errorf("VF %d (%s) went to another network namespace a moment ago; drain the node first", number, vf)
		}
	}
	return nil
}

// explainNumVFs says what to do about a refused sriov_numvfs.
func explainNumVFs(err error, pf *inventory.PF) error {
	do := ""
	switch {
	case errors.Is(err, unix.ENOMEM), errors.Is(err, unix.ENOSPC):
		do = "; the PCI bridge has no room for the VFs: boot with pci=realloc"
	case errors.Is(err, fs.ErrNotExist):
		do = fmt.Sprintf("; SR-IOV is off: switch it on in the BIOS, and in the card (mlxconfig -d %s set SRIOV_EN=1), then reboot", pf.PCI)
	case errors.Is(err, unix.EBUSY):
		do = "; somebody else made VFs at the same moment: run it again"
	case errors.Is(err, unix.ERANGE), errors.Is(err, unix.EINVAL):
		do = fmt.Sprintf("; the card has at most %d", pf.TotalVFs)
	case errors.Is(err, unix.EPERM):
		do = "; a VF belongs to a virtual machine: end that first"
	case errors.Is(err, unix.EIO):
		do = "; see dmesg for what the driver says"
	}
	return fmt.Errorf("%w%s", err, do)
}

// driver binds a VF to its driver and waits for what that makes: an interface,
// and on InfiniBand an RDMA device.
func driver(pf *inventory.PF, number int) setting {
	ready := func(k *Kernel) bool {
		vf := k.vf(pf, number)
		return k.has(vf, "net") && (pf.Link != inventory.InfiniBand || k.has(vf, "infiniband"))
	}
	return setting{
		what: vfName(number) + " driver", wanted: "bound",
		get: func(k *Kernel) (string, error) {
			vf := k.vf(pf, number)
			if vf == "" || !k.bound(vf) || !ready(k) {
				return "", nil
			}
			return "bound", nil
		},
		set: func(k *Kernel, _ string) error {
			vf := k.vf(pf, number)
			if vf == "" {
				return fmt.Errorf("%s has no VF %d any more: it was changed at the same moment; run it again", pf, number)
			}
			if err := k.write(filepath.Join(k.Sys, "bus/pci/drivers_probe"), vf); err != nil {
				return err
			}
			if err := k.wait("the driver of "+vf, func() bool { return k.bound(vf) }); err != nil {
				return fmt.Errorf("%w; load the VFs' driver (modprobe $(cat %s))", err, k.device(vf, "modalias"))
			}
			return k.wait("the interface of "+vf, func() bool { return ready(k) })
		},
	}
}

// mtuOf is the MTU of a PF (-1) or of one of its VFs.
func mtuOf(pf *inventory.PF, number, mtu int) setting {
	file := func(k *Kernel) string {
		device := pf.PCI
		if number >= 0 {
			device = k.vf(pf, number)
		}
		names, _ := os.ReadDir(k.device(device, "net"))
		if device == "" || len(names) == 0 {
			return ""
		}
		return k.device(device, "net/"+names[0].Name()+"/mtu")
	}
	return setting{
		what: vfName(number) + " MTU", wanted: strconv.Itoa(mtu),
		get: func(k *Kernel) (string, error) {
			if f := file(k); f != "" {
				return k.read(f)
			}
			return "", nil
		},
		set: func(k *Kernel, to string) error {
			err := fs.ErrNotExist
			for try := 0; try < 3 && errors.Is(err, fs.ErrNotExist); try++ { // udev may rename it meanwhile
				f := file(k)
				if f == "" {
					return fmt.Errorf("%s of %s has no interface here", vfName(number), pf)
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

// up is the PF's administrative state: VFs have no link below a PF that is down.
func up(pf *inventory.PF) setting {
	return setting{
		what: "PF", wanted: "up",
		get: func(k *Kernel) (string, error) {
			flags, err := k.flags(pf)
			if err != nil || flags&unix.IFF_UP == 0 {
				return "down", err
			}
			return "up", nil
		},
		set: func(k *Kernel, to string) error {
			flags, err := k.flags(pf)
			if err != nil {
				return err
			}
			flags &^= unix.IFF_UP
			if to == "up" {
				flags |= unix.IFF_UP
			}
			return k.write(k.device(pf.PCI, "net/"+pf.Name()+"/flags"), fmt.Sprintf("%#x", flags))
		},
	}
}

// running says whether a PF has a link.
func (k *Kernel) running(pf *inventory.PF) bool {
	state, _ := k.read(k.device(pf.PCI, "net/"+pf.Name()+"/operstate"))
	return state == "up"
}

func (k *Kernel) flags(pf *inventory.PF) (uint64, error) {
	file := k.device(pf.PCI, "net/"+pf.Name()+"/flags")
	text, err := k.read(file)
	if err != nil {
		return 0, err
	}
	flags, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is no number", file, text)
	}
	return flags, nil
}
