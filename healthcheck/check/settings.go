// SPDX-License-Identifier: Apache-2.0

package check

import "time"

// ClockMost is the largest clock error that a limit can specify. It is below 16 s, at which the
// kernel stops its estimate and reports the clock as unsynchronized (kernel/time/ntp.c).
const ClockMost = 15 * time.Second

// Settings is the site's configuration of the checks.
type Settings struct {
	// path of an nhc.conf of LBNL Node Health Check whose check_* lines are evaluated, too; "": none
	NHC         string          `toml:"nhc"`
	FileSystems []FileSystem    `toml:"filesystem"`
	Memory      MemorySettings  `toml:"memory"`
	Clock       ClockSettings   `toml:"clock"`
	Daemons     DaemonSettings  `toml:"daemons"`
	Jail        JailSettings    `toml:"jail"`
	Network     NetworkSettings `toml:"network"`
	GPU         GPUSettings     `toml:"gpu"`
	// by number: "drain", "warn" or "ignore"; other XIDs have the policy of xid.go
	XID map[string]string `toml:"xid"`
}

// FileSystem is one [[filesystem]], which jobs need.
type FileSystem struct {
	Path     string `toml:"path"`      // absolute path: a mount point, unless Any
	Any      bool   `toml:"any"`       // Path need not be a mount point
	ReadOnly bool   `toml:"read_only"` // mounted read-only on purpose, and not written to
	// usage of blocks or inodes in percent at which the file system is full and drains the node; 3 points less is a
	// warning. 0: 98, as a warning only
	Full float64 `toml:"full"`
}

// MemorySettings is [memory]; a limit of zero is not checked.
type MemorySettings struct {
	Total     uint64 `toml:"total"`     // minimum in MiB, as RealMemory in slurm.conf
	Available uint64 `toml:"available"` // MiB; less is a warning
	Swap      uint64 `toml:"swap"`      // minimum in MiB
	HugePages uint64 `toml:"hugepages"` // minimum number of pages of the default size
	Idle      uint64 `toml:"idle"`      // minimum in MiB available while no job runs
}

// ClockSettings is [clock]: the limits of the clock's error, at most ClockMost.
type ClockSettings struct {
	Warn time.Duration `toml:"warn"`
	Fail time.Duration `toml:"fail"` // 0: never
}

// DaemonSettings is [daemons]: the daemons that must run.
type DaemonSettings struct {
	// munged's socket; "": the default one, on nodes with a key; "none": munge is not used
	Munge     string   `toml:"munge"`
	Processes []string `toml:"processes"` // names as in /proc/PID/comm, of processes of root or of a system account
}

// JailSettings is [jail]: the paths of gojail; without a gojail.toml there are no jails.
type JailSettings struct {
	Config string `toml:"config"`
	State  string `toml:"state"`  // %n is the node's name; "": the path in plugstack.conf
	LibDir string `toml:"libdir"` // "": ../lib/gojail relative to this program
}

// NetworkSettings is [network].
type NetworkSettings struct {
	Config    string `toml:"config"`    // path of network.toml; without the file there are no policies
	Interface string `toml:"interface"` // interface toward the controller; "": the one of the default route
	// RDMA ports that must be up: "mlx5_0" or "mlx5_0/1"; none: all ports that the kernel has enabled
	Ports []string `toml:"ports"`
	Rate  int      `toml:"rate"` // minimum rate of each port in Gbit/s; 0: not checked
	// hosts of slurmctld, names or addresses; none: SlurmctldHost of slurm.conf
	Controllers []string `toml:"controllers"`
	Except      []string `toml:"except"` // RDMA devices that are neither checked nor have their counters read
}

// GPUSettings is [gpu], about NVIDIA GPUs.
type GPUSettings struct {
	Count   int    `toml:"count"`   // number of GPUs; 0: the number on the PCI bus, if a driver is installed
	Library string `toml:"library"` // libnvidia-ml.so.1, or its absolute path
	SMI     string `toml:"smi"`     // path of nvidia-smi; "none": nvidia-smi is not run
	// minimum number of active NVLinks of each GPU; 0: the number that most GPUs of its model have
	Links int `toml:"links"`
	// true: a row remapping that waits for a reset drains the node; false: it is a warning
	PendingFail bool   `toml:"pending"`
	Persistence string `toml:"persistence"` // policy for persistence mode that is off: "warn" or "ignore"
	MIG         string `toml:"mig"`         // required MIG mode of all GPUs: "on" or "off"; "": not checked
	Peermem     string `toml:"peermem"`     // policy for a missing nvidia_peermem: "warn", "drain" or "ignore"
}
