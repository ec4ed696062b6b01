// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/netsetup/config"
)

// Settings is what the checks need to know about the site.
type Settings struct {
	NHC         string            `toml:"nhc"` // an nhc.conf of LBNL Node Health Check, whose check_* lines are looked at too; "": none
	FileSystems []FileSystem      `toml:"filesystem"`
	Memory      MemorySettings    `toml:"memory"`
	Clock       ClockSettings     `toml:"clock"`
	Daemons     DaemonSettings    `toml:"daemons"`
	Jail        JailSettings      `toml:"jail"`
	Network     NetworkSettings   `toml:"network"`
	GPU         GPUSettings       `toml:"gpu"`
	XID         map[string]string `toml:"xid"` // by number: "drain", "warn" or "ignore"; what is not here is as in check_xid.go
}

// FileSystem is one [[filesystem]] that jobs need.
type FileSystem struct {
	Path     string  `toml:"path"`      // absolute: a mount point, unless Any
	Any      bool    `toml:"any"`       // need not be a mount point of its own
	ReadOnly bool    `toml:"read_only"` // is mounted read-only on purpose, and not written to
	Full     float64 `toml:"full"`      // percent of blocks or inodes from which it is full, and drains the node; 3 less is a warning. 0: 98, and it is a warning too
}

// MemorySettings is about memory; zero is not asked for.
type MemorySettings struct {
	Total     uint64 `toml:"total"`     // MiB, as RealMemory in slurm.conf: the node has at least that
	Available uint64 `toml:"available"` // MiB: less than that is a warning
	Swap      uint64 `toml:"swap"`      // MiB: the node has at least that
	HugePages uint64 `toml:"hugepages"` // pages of the default size: the node has at least that many
	Idle      uint64 `toml:"idle"`      // MiB that are available at least while no job runs
}

// ClockSettings is how far the clock may be off, up to clockMost.
type ClockSettings struct {
	Warn time.Duration `toml:"warn"`
	Fail time.Duration `toml:"fail"` // 0: never
}

// DaemonSettings is what must run.
type DaemonSettings struct {
	Munge     string   `toml:"munge"`     // munged's socket; "": the usual one, where the node has a key; "none": no munge here
	Processes []string `toml:"processes"` // names as in /proc/PID/comm, of root or of a system account
}

// JailSettings is where gojail's parts are; without a gojail.toml there are no jails.
type JailSettings struct {
	Config string `toml:"config"`
	State  string `toml:"state"`  // %n is the node; "": as plugstack.conf has it
	LibDir string `toml:"libdir"` // "": ../lib/gojail from this program
}

// NetworkSettings is about the node's networks.
type NetworkSettings struct {
	Config      string   `toml:"config"`      // network.toml; without one there are no policies
	Interface   string   `toml:"interface"`   // leads to the controller; "": whichever the default route names
	Ports       []string `toml:"ports"`       // RDMA ports that must be up: "mlx5_0" or "mlx5_0/1"; none: all that the kernel has enabled
	Rate        int      `toml:"rate"`        // Gbit/s that each has at least; 0: not asked
	Controllers []string `toml:"controllers"` // hosts of slurmctld, by name or address; none: SlurmctldHost of slurm.conf
	Except      []string `toml:"except"`      // RDMA devices that are not looked at, nor their counters read
}

// GPUSettings is about NVIDIA GPUs.
type GPUSettings struct {
	Count       int    `toml:"count"`       // how many the node has; 0: as many as its PCI bus shows, if a driver is installed
	Library     string `toml:"library"`     // libnvidia-ml.so.1, or its absolute path
	SMI         string `toml:"smi"`         // path of nvidia-smi; "none": it is not run
	Links       int    `toml:"links"`       // NVLinks that each GPU has at least; 0: as many as most of its model have
	PendingFail bool   `toml:"pending"`     // a row remapping that waits for a reset drains the node; else a warning
	Persistence string `toml:"persistence"` // "warn" or "ignore" when persistence mode is off
	MIG         string `toml:"mig"`         // "on" or "off", as all GPUs of the node have it; "": not asked
	Peermem     string `toml:"peermem"`     // "warn", "drain" or "ignore" when nvidia_peermem is missing
}

// DefaultSettings is what holds without a health.toml.
func DefaultSettings() *Settings {
	return &Settings{
		Clock:   ClockSettings{Warn: 5 * time.Second},
		Jail:    JailSettings{Config: contract.DefaultConfig},
		Network: NetworkSettings{Config: config.DefaultPath},
		GPU:     GPUSettings{Library: "libnvidia-ml.so.1", SMI: "/usr/bin/nvidia-smi", Persistence: "warn", Peermem: "warn"},
	}
}

// fileSystems are the configured ones, or just the root, which may well be read-only.
// Not in DefaultSettings: decoding a file over it would leave parts of an element.
func (s *Settings) fileSystems() []FileSystem {
	if len(s.FileSystems) == 0 {
		return []FileSystem{{Path: "/", Any: true, ReadOnly: true}}
	}
	return s.FileSystems
}

// check refuses what cannot be meant.
func (s *Settings) check(refuse refusal) error {
	errs := []error{
		within(refuse, s.Clock.Warn, time.Millisecond, clockMost, "clock", "warn"),
		within(refuse, s.Clock.Fail, 0, clockMost, "clock", "fail"),
		absolute(refuse, s.NHC, "nhc"),
		absolute(refuse, s.Jail.Config, "jail", "config"),
		absolute(refuse, s.Jail.State, "jail", "state"),
		absolute(refuse, s.Jail.LibDir, "jail", "libdir"),
		absolute(refuse, s.Network.Config, "network", "config"),
		choice(refuse, s.GPU.Persistence, []string{"warn", "ignore"}, "gpu", "persistence"),
		choice(refuse, s.GPU.MIG, []string{"on", "off", ""}, "gpu", "mig"),
		choice(refuse, s.GPU.Peermem, []string{"warn", "drain", "ignore"}, "gpu", "peermem"),
	}
	if s.Daemons.Munge != "none" {
		errs = append(errs, absolute(refuse, s.Daemons.Munge, "daemons", "munge"))
	}
	if s.GPU.SMI != "none" {
		errs = append(errs, absolute(refuse, s.GPU.SMI, "gpu", "smi"))
	}
	if strings.Contains(s.GPU.Library, "/") { // else the loader's directories, which are root's
		errs = append(errs, absolute(refuse, s.GPU.Library, "gpu", "library"))
	}
	for _, code := range slices.Sorted(maps.Keys(s.XID)) {
		if n, ok := digits(code); !ok || n == 0 || n > 9999 {
			errs = append(errs, refuse(toml.Key{"xid", code}, "write a number from 1 to 9999"))
		}
		errs = append(errs, choice(refuse, s.XID[code], []string{"drain", "warn", "ignore"}, "xid", code))
	}
	for _, fs := range s.FileSystems {
		if !filepath.IsAbs(fs.Path) {
			errs = append(errs, refuse(toml.Key{"filesystem"}, "path = %.100q: write an absolute path", fs.Path))
		}
		if fs.Full < 0 || fs.Full > 100 {
			errs = append(errs, refuse(toml.Key{"filesystem"}, "full = %v: write percent, from 0 to 100", fs.Full))
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func choice(refuse refusal, value string, words []string, key ...string) error {
	if !slices.Contains(words, value) {
		return refuse(key, "%.30q: write one of %s", value, strings.Join(words, ", "))
	}
	return nil
}

// look is a check before it is given the site's settings.
type look func(ctx context.Context, h *Host, s *Settings) Finding

func with(l look) func(context.Context, *Host) Finding {
	return func(ctx context.Context, h *Host) Finding { return l(ctx, h, &h.Config.Settings) }
}
