// SPDX-License-Identifier: Apache-2.0

package gres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
)

// Directory is the directory of the device nodes of VFs, below /dev.
const Directory = "gojail"

// major is a device number for local use; no driver has it.
const major = 120

// Device is a VF as a device of Slurm.
type Device struct {
	Name, Type string // name and type of the GRES: "nic", "rail0"; Type may be ""
	Index      int    // index among the node's devices of that name, in Slurm's order
	Rail       *config.Rail
	VF         *inventory.VF
}

// filePath returns the path of the device's node, below the directory dev.
func (d Device) filePath(dev string) string {
	return d.pathPrefix(dev) + strconv.Itoa(d.Index)
}

func (d Device) pathPrefix(dev string) string { return filepath.Join(dev, Directory, d.Name+"_") }

// ListDevices returns the VFs of the rails that have a GRES, in the order of gres.conf. It fails if VFs of a policy are
// missing, because the numbers of the VFs after them would change.
func ListDevices(cfg *config.Config, inv *inventory.Inventory) ([]Device, error) {
	vfs, err := policy.FindRailVFs(cfg, inv)
	if err != nil {
		return nil, err
	}
	if err := checkComplete(cfg, inv); err != nil {
		return nil, err
	}
	var all []Device
	count := map[string]int{}
	owner := map[*config.Policy]*config.Rail{}
	for _, rail := range cfg.Rails {
		if rail.GRES == "" {
			continue
		}
		if other := owner[rail.Policy]; other != nil {
			return nil, fmt.Errorf("%s:%d: rail %q has the policy of rail %q, so Slurm would count its VFs twice; "+
				"give it a policy of its own, or take gres from one of them",
				cfg.Path, rail.Line, rail.Name, other.Name)
		}
		owner[rail.Policy] = rail
		name, kind, _ := strings.Cut(rail.GRES, ":")
		for _, vf := range vfs[rail] {
			all = append(all, Device{name, kind, count[name], rail, vf})
			count[name]++
		}
	}
	return all, nil
}

func checkComplete(cfg *config.Config, inv *inventory.Inventory) error {
	cards, _, err := policy.FindCards(cfg, inv)
	errs := []error{err}
	for _, c := range cards {
		if len(c.PF.VFs) != len(c.VFs) {
			errs = append(errs, fmt.Errorf("%s has %d VFs and should have %d; run `gojail vf apply` first", c.PF,
				len(c.PF.VFs), len(c.VFs)))
		}
	}
	return errors.Join(errs...)
}

// FindGiven returns the devices in a SLURM_STEP_NICS or SLURM_JOB_NICS, which is
// "mlx4_0,mlx4_3" with the numbers of gres/nic's devices, or "" for none. The caller decides
// which of the two variables to trust, and when.
func FindGiven(nics string, devices []Device) (given []Device, err error) {
	if nics == "" {
		return nil, nil
	}
	for word := range strings.SplitSeq(nics, ",") {
		digits := word[strings.LastIndex(word, "_")+1:]
		i := slices.IndexFunc(devices,
			func(d Device) bool { return d.Name == "nic" && strconv.Itoa(d.Index) == digits })
		if i < 0 {
			return nil,
				fmt.Errorf("the job was allocated the NICs %.100q, but this node has no %q; compare gres.conf with "+
					"`gojail gres`", nics, word)
		}
		given = append(given, devices[i])
	}
	return given, nil
}

// MakeFiles creates the devices' nodes, and removes those of VFs that no longer exist. It
// keeps correct nodes. It must run before slurmd starts, after each boot.
func MakeFiles(dev string, devices []Device) error {
	dir := filepath.Join(dev, Directory)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("create the device nodes of VFs: %w", err)
	}
	wanted := map[string]bool{}
	for minor, d := range devices {
		path := d.filePath(dev)
		wanted[filepath.Base(path)] = true
		if err := makeNode(path, unix.Mkdev(major, uint32(minor))); err != nil {
			return fmt.Errorf("create the device node of VF %s: %w", d.VF.PCI, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !wanted[e.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// makeNode creates a device node that only root may open: it only represents a VF.
func makeNode(path string, device uint64) error {
	var is unix.Stat_t
	err := unix.Lstat(path, &is)
	if err == nil && is.Mode == unix.S_IFCHR|0o600 && uint64(is.Rdev) == device {
		return nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(device)); err != nil {
		return &os.PathError{Op: "mknod", Path: path, Err: err}
	}
	return os.Chmod(path, 0o600) // regardless of the umask
}
