// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/nhc"
)

// Names of children. Few of them: a process costs more than most checks.
const (
	childStorage = "storage"
	childNode    = "node"
	childGPU     = "gpu"
	childInforom = "inforom"
	childControl = "control" // a name service can hang
	// What nhc.conf asserts can hang in three ways.
	childNHC        = "nhc"
	childNHCFiles   = "nhc-files"
	childNHCCommand = "nhc-command"
)

// All returns the table of checks, in the order in which they are shown. The table is made
// once and must not be changed.
func All() []check.Check { return allChecks() }

// Names returns the names of all checks.
func Names() []string {
	var all []string
	for _, c := range All() {
		all = append(all, c.Name)
	}
	return all
}

var allChecks = sync.OnceValue(func() []check.Check {
	all := slices.Concat(nodeChecks(), networkChecks(), gpuChecks(), nhcChecks())
	for i := range all {
		switch c := &all[i]; c.Child {
		case childGPU, childInforom:
			if c.Name == "gpu-count" {
				continue // slurm.conf may know of GPUs that the bus has lost
			}
			c.Absent = func(h *check.Host) bool { return noGPUs(h, h.Settings) }
		case childNHC, childNHCFiles, childNHCCommand:
			c.Absent = func(h *check.Host) bool { return h.Settings.NHC == "" }
		}
	}
	return all
})

// storageTimeout is a little more than storagePatience.
const storageTimeout = 6 * time.Second

// nodeChecks are those of the node itself.
func nodeChecks() []check.Check {
	return []check.Check{
		{Name: "fs-mounted", Looks: "the configured file systems in the mount table", Do: "Mount the file system, or look in the kernel's log why it became read-only.",
			Severity: check.Drain, Timeout: 2 * time.Second, Good: 2, Run: with(mounted)},
		{Name: "fs-full", Looks: "space and inodes of the configured file systems (statfs)", Do: "Make room; where it does not answer see to its server or disk. One that is full drains the node only where health.toml has `full`.",
			Severity: check.Drain, Timeout: storageTimeout, Bad: 3, Good: 3, Child: childStorage, Hang: check.Fail, Run: with(full)},
		{Name: "fs-write", Looks: "a small file written to the disk or server of each configured file system, and removed", Do: "See to the file system's server or disk.",
			Severity: check.Drain, Timeout: storageTimeout, Bad: 3, Good: 3, Child: childStorage, Hang: check.Fail, Run: with(writable)},
		{Name: "memory", Looks: "memory in all, and available (/proc/meminfo)", Do: "Look for a memory module that is gone, or correct `total` in [memory].",
			Severity: check.Drain, Timeout: 2 * time.Second, Bad: 2, Run: with(memory)},
		{Name: "memory-idle", Looks: "available memory while no job runs (/proc/meminfo)", Do: "Look into /dev/shm and for processes that are left; else reboot.",
			Severity: check.Drain, Timeout: 4 * time.Second, Bad: 3, Child: childNode, Hang: check.Unknown, Run: with(idleMemory)},
		{Name: "hugepages", Looks: "huge pages in all (/proc/meminfo)", Do: "Reserve them at boot, or correct `hugepages` in [memory].",
			Severity: check.WarnOnly, Timeout: 2 * time.Second, Bad: 2, Run: with(hugePages)},
		{Name: "limits", Looks: "processes, dead ones among them, and open files, against the kernel's limits", Do: "Find who has so many.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Bad: 2, Run: with(limits)},
		{Name: "cgroup", Looks: "processes in the cgroups of jobs that have ended, and controllers of Slurm's cgroup", Do: "End the processes; see to Delegate= in slurmd's unit.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNode, Hang: check.Unknown, Run: with(cgroups)},
		{Name: "swap", Looks: "swap in all (/proc/meminfo)", Do: "Turn the swap on, or correct `swap` in [memory].",
			Severity: check.WarnOnly, Timeout: 2 * time.Second, Bad: 2, Run: with(swap)},
		{Name: "stuck", Looks: "processes that several runs in a row see in D state", Do: "Find what they wait for in /proc/PID/stack; a driver's need a reboot.",
			Severity: check.Drain, Timeout: 4 * time.Second, Good: 2, Run: with(stuck)},
		{Name: "clock", Looks: "whether the kernel calls the clock synchronized, and how far it may be off (adjtimex)", Do: "Start the time daemon, and see whether it reaches its servers.",
			Severity: check.Drain, Timeout: 2 * time.Second, Bad: 2, Good: 2, Run: with(clock)},
		{Name: "kernel-log", Looks: "the kernel's log since boot: storage that failed, hung tasks, machine checks", Do: "Read the kernel's log; reboot when the cause is gone. " + afterRepair("kernel-log"),
			Severity: check.Drain, Timeout: 4 * time.Second, Run: with(kernelLog)},
		{Name: "disk", Looks: "RAID arrays and NVMe controllers (sysfs)", Do: "Replace the disk.",
			Severity: check.Drain, Timeout: 4 * time.Second, Bad: 2, Good: 2, Run: with(disk)},
		{Name: "edac", Looks: "the memory controllers' error counts (EDAC)", Do: "Replace the memory module that edac-util names, then reboot. " + afterRepair("edac"),
			Severity: check.Drain, Timeout: 4 * time.Second, Run: with(edac)},
		{Name: "munge", Looks: "munged, by asking it for a credential", Do: "Start munged; its log tells what is wrong.",
			Severity: check.Drain, Timeout: 5 * time.Second, Bad: 2, Run: with(munge)},
		{Name: "daemons", Looks: "processes that the configuration names", Do: "Start the daemon.",
			Severity: check.Drain, Timeout: 4 * time.Second, Bad: 2, Run: with(daemons)},
	}
}

// networkChecks are those of networks and jails.
func networkChecks() []check.Check {
	return []check.Check{
		{Name: "default-route", Looks: "the node's default route and its interface", Do: "Bring the control network up, or correct `interface` in [network].",
			Severity: check.Drain, Timeout: 2 * time.Second, Bad: 2, Run: with(defaultRoute)},
		{Name: "controller", Looks: "the way to slurmctld: its name, the route's interface, and a ping if it ever answered one", Do: "See to the control network and its routes, or correct `interface` and `controllers` in [network].",
			Severity: check.Drain, Timeout: 6 * time.Second, Bad: 3, Good: 2, Child: childControl, Hang: check.Unknown, Run: with(controller)},
		{Name: "rdma-ports", Looks: "state and rate of RDMA ports (sysfs)", Do: "See to cable, transceiver, switch port and subnet manager.",
			Severity: check.Drain, Timeout: 4 * time.Second, Bad: 3, Good: 2, Child: childNode, Hang: check.Fail, Run: with(rdmaPorts)},
		{Name: "rdma-flaps", Looks: "how often the links of RDMA ports went down in the last hour", Do: "Clean or replace cable and transceiver.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNode, Hang: check.Unknown, Run: with(rdmaFlaps)},
		{Name: "rdma-errors", Looks: "how much the error counts of RDMA ports grow", Do: "Clean or replace cable and transceiver.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNode, Hang: check.Unknown, Run: with(rdmaErrors)},
		{Name: "rdma-pause", Looks: "how much of the time RoCE ports had to pause: PFC and pause frames received (ethtool, mlx5)", Do: "Look for the receiver that cannot keep up; ethtool -S shows the counters.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNode, Hang: check.Unknown, Run: with(rdmaPause)},
		{Name: "rdma-gids", Looks: "GIDs of RoCE ports that are up (sysfs)", Do: "Bring the port's network interface up, with its address.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Bad: 2, Child: childNode, Hang: check.Unknown, Run: with(rdmaGIDs)},
		{Name: "vf", Looks: "cards, drivers and VFs, against the policies of network.toml", Do: "Run gojail vf apply on the node, then gojail check.",
			Severity: check.Drain, Timeout: 4 * time.Second, Bad: 2, Good: 2, Child: childNode, Hang: check.Fail, Run: with(vfs)},
		{Name: "vf-quarantine", Looks: "VFs that no job gets", Do: "See gojail vf ls for the reason; lift it when the VF is well.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNode, Hang: check.Unknown, Run: with(quarantine)},
		{Name: "jail", Looks: "what `gojail check` calls FAIL: storage, mount targets, plugin and library", Do: "Run gojail check on the node.",
			Severity: check.Drain, Timeout: 8 * time.Second, Bad: 2, Good: 2, Child: childNode, Hang: check.Fail, Run: with(jails)},
		{Name: "jail-driver", Looks: "libraries of NVIDIA's driver in jails that bring it, as tasks see them", Do: "See to the driver's files on the node, remove empty ones from the jail's own storage, then run gojail reload.",
			Severity: check.Drain, Timeout: 4 * time.Second, Bad: 2, Good: 2, Child: childNode, Hang: check.Unknown, Run: with(jailDriver)},
		{Name: "jail-leftovers", Looks: "jobs whose end failed and was not made up for since", Do: "Run gojail sweep on the node.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNode, Hang: check.Unknown, Run: with(leftovers)},
	}
}

// gpuChecks are those of NVIDIA GPUs. The first one finds out whether NVML answers at all.
func gpuChecks() []check.Check {
	return []check.Check{
		{Name: "gpu-driver", Looks: "whether NVML answers, and is of the loaded driver's version", Do: "If it is slow, start nvidia-persistenced with persistence mode. Else reboot; after an update of the driver that is what is missing.",
			Severity: check.Drain, Timeout: 8 * time.Second, Bad: 2, Good: 2, Child: childGPU, Hang: check.Fail, Slow: withoutPersistence, Run: with(gpuDriver)},
		{Name: "gpu-count", Looks: "GPUs of the configuration or of slurm.conf, on the PCI bus, and in the driver", Do: "Reboot; if the GPU stays away, have it looked at.",
			Severity: check.Drain, Timeout: 3 * time.Second, Bad: 2, Good: 2, Child: childGPU, Hang: check.Unknown, Run: with(gpuCount)},
		gpu("gpu-lost", check.Drain, "GPUs that the driver has lost, or that want a reset", "Reset the GPU, or reboot.", gpus("no GPU is lost", gpuLost)),
		gpu("gpu-recovery", check.Drain, "the recovery action that the driver wants for a GPU", "Do what it says.", gpus("no GPU wants a recovery action", gpuRecovery)),
		gpu("gpu-ecc", check.Drain, "errors that ECC could not correct, since the driver was loaded", "Reset the GPU; if it comes again, have it replaced.", gpuECC),
		gpu("gpu-rows", check.Drain, "remapped rows of GPU memory", "Pending: reset the GPU when it is idle. Failed: have it replaced.", gpus("no row remapping is pending or has failed", gpuRows)),
		gpu("gpu-pages", check.WarnOnly, "retired pages of GPU memory, before Ampere", "Reset the GPU; have it replaced when few pages are left.", gpus("no page retirement is pending", gpuPages)),
		gpu("gpu-nvlink", check.Drain, "active NVLinks", "Reset the GPUs; if it comes again, have baseboard and NVLinks looked at.", gpus("all NVLinks are active", gpuLinks)),
		gpu("gpu-nvlink-errors", check.WarnOnly, "how much the error counts of NVLinks grow", "Reset the GPUs; if it comes again, have baseboard and NVLinks looked at.", gpuLinkErrors),
		gpu("gpu-fabric", check.Drain, "whether GPUs have joined the NVLink fabric", "See to the fabric manager's log.", gpus("GPUs have joined the NVLink fabric, if there is one", gpuFabric)),
		gpu("gpu-pcie", check.Drain, "PCIe lanes and generation in use", "Reseat the GPU.", gpus("GPUs use all their PCIe lanes", gpuPCIe)),
		{Name: "gpu-clocks", Looks: "GPUs that their own hardware slowed down in 6 of the last 20 runs", Do: "See to cooling and power.",
			Severity: check.Drain, Timeout: 3 * time.Second, Good: 2, Child: childGPU, Hang: check.Unknown, Run: with(gpuClocks)},
		gpu("gpu-temperature", check.WarnOnly, "temperatures, against the GPUs' own thresholds", "See to cooling.", gpus("no GPU is too hot", gpuTemperature)),
		gpu("gpu-persistence", check.WarnOnly, "persistence mode", "Start nvidia-persistenced.", gpus("persistence mode is on", gpuPersistence)),
		gpu("gpu-clock-setting", check.WarnOnly, "application clocks, against the vendor's", "Run nvidia-smi -rac.", gpus("no application clock is lowered", gpuClockSetting)),
		gpu("gpu-mig", check.WarnOnly, "MIG mode, against `mig` in [gpu]", "Run nvidia-smi -mig 1 or -mig 0, and reset the GPUs.", gpuMIG),
		gpu("gpu-vbios", check.WarnOnly, "whether GPUs of one model have the same vBIOS", "Update the vBIOS of the one that differs.", gpus("GPUs of one model have the same vBIOS", gpuVBIOS)),
		{Name: "gpu-peermem", Looks: "whether RDMA can reach GPU memory: nvidia_peermem, or the open kernel modules", Do: "Load nvidia_peermem at boot.",
			Severity: check.Drain, Timeout: 3 * time.Second, Bad: 2, Good: 2, Child: childGPU, Hang: check.Unknown, Run: with(gpuPeermem)},
		gpu("gpu-leftovers", check.WarnOnly, "users' processes on GPUs outside of any job; needs proctrack/cgroup", "End the process.", gpus("no process is left on a GPU", gpuLeftovers)),
		{Name: "xid", Looks: "the driver's XIDs in the kernel's log since boot", Do: "Look the number up in NVIDIA's XID catalogue; reset the GPU, or reboot. " + afterRepair("xid"),
			Severity: check.Drain, Timeout: 4 * time.Second, Run: with(xid)},
		{Name: "nvidia-smi", Looks: "whether nvidia-smi answers", Do: "Run it; reboot if it hangs.",
			Severity: check.Drain, Timeout: 8 * time.Second, Bad: 2, Good: 2, Child: childGPU, Hang: check.Fail, Slow: withoutPersistence, Run: with(nvidiaSMI)},
		{Name: "gpu-inforom", Looks: "the checksums of GPUs' infoROMs, once a day (NVML)", Do: "Reboot; if it stays, have the GPU looked at.",
			Severity: check.WarnOnly, Timeout: inforomTimeout, Child: childInforom, Hang: check.Unknown, Run: with(gpuInforom)},
	}
}

// nhcChecks are the lines of an nhc.conf.
func nhcChecks() []check.Check {
	return []check.Check{
		{Name: "nhc", Looks: "what nhc.conf asserts of hardware, mounts, processes and sockets", Do: "See the line in nhc.conf; gojail-healthcheck list shows how it was read.",
			Severity: check.Drain, Timeout: 4 * time.Second, Bad: 2, Good: 2, Child: childNHC, Hang: check.Unknown, Run: with(nhcLines(nhc.Node))},
		{Name: "nhc-files", Looks: "what nhc.conf asserts of files and of space", Do: "See the line in nhc.conf, and to the file system.",
			Severity: check.Drain, Timeout: storageTimeout, Bad: 3, Good: 3, Child: childNHCFiles, Hang: check.Fail, Run: with(nhcLines(nhc.Storage))},
		{Name: "nhc-command", Looks: "commands and pings of nhc.conf", Do: "Run the command of the line in nhc.conf.",
			Severity: check.Drain, Timeout: 8 * time.Second, Bad: 2, Good: 2, Child: childNHCCommand, Hang: check.Unknown, Run: with(nhcLines(nhc.Command))},
		{Name: "nhc-config", Looks: "lines of nhc.conf that are not understood, or not done as they say", Do: "Write them in other words, or switch this check off; gojail-healthcheck list shows them.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNHC, Hang: check.Unknown, Run: with(nhcConfig)},
	}
}

// afterRepair is for checks that keep what they saw until the node boots.
func afterRepair(check string) string {
	return "After a repair without a reboot: gojail-healthcheck forget " + check + "."
}

// gpu is a row for what one look at NVML has told.
func gpu(name string, severity check.Severity, looks, do string, l look) check.Check {
	return check.Check{Name: name, Looks: looks + " (NVML)", Do: do, Severity: severity, Timeout: 3 * time.Second,
		Bad: 2, Good: 2, Child: childGPU, Hang: check.Unknown, Run: with(l)}
}

// look is a check before it is given the site's settings.
type look func(ctx context.Context, h *check.Host, s *check.Settings) check.Finding

func with(l look) func(context.Context, *check.Host) check.Finding {
	return func(ctx context.Context, h *check.Host) check.Finding { return l(ctx, h, h.Settings) }
}
