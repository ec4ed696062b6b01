// SPDX-License-Identifier: Apache-2.0

package check

import "time"

// ClockMost is the largest clock error that a limit can name: below 16 s, where the kernel
// stops its estimate and calls the clock unsynchronized (kernel/time/ntp.c).
const ClockMost = 15 * time.Second

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
	XID         map[string]string `toml:"xid"` // by number: "drain", "warn" or "ignore"; what is not here is as in xid.go
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

// ClockSettings is how far the clock may be off, up to ClockMost.
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
