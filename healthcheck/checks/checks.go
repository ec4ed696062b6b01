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

// Names of child processes. There are few, since a process costs more than most checks.
const (
	childStorage = "storage"
	childNode    = "node"
	childJail    = "jail" // its storage can hang, and must not keep the checks of the node from running
	childGPU     = "gpu"
	childInforom = "inforom"
	childControl = "control" // name services can hang
	// The assertions of nhc.conf can hang in three ways.
	childNHC        = "nhc"
	childNHCFiles   = "nhc-files"
	childNHCCommand = "nhc-command"
)

// All returns the table of checks in display order. The table is built once and must not be
// changed.
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
				continue // slurm.conf may list GPUs that are lost from the bus
			}
			c.IsAbsent = func(h *check.Host) bool { return hasNoGPUs(h, h.Settings) }
		case childNHC, childNHCFiles, childNHCCommand:
			c.IsAbsent = func(h *check.Host) bool { return h.Settings.NHC == "" }
		}
	}
	return all
})

// storageTimeout exceeds storagePatience slightly.
const storageTimeout = 6 * time.Second

// nodeChecks returns the checks of the node itself.
func nodeChecks() []check.Check {
	return []check.Check{
		{Name: "fs-mounted", Subject: "the configured file systems in the mount table", Remedy: "Mount the file system, or search the kernel's log for why it became read-only.",
			Severity: check.Drain, Timeout: 2 * time.Second, GoodRuns: 2, Run: withSettings(mounted)},
		{Name: "fs-full", Subject: "space and inodes of the configured file systems (statfs)", Remedy: "Free space; if the file system does not answer, check its server or disk. A full file system drains the node only if health.toml sets `full`.",
			Severity: check.Drain, Timeout: storageTimeout, BadRuns: 3, GoodRuns: 3, Child: childStorage, HangVerdict: check.Fail, Run: withSettings(full)},
		{Name: "fs-write", Subject: "a small file written to the disk or server of each configured file system, and removed", Remedy: "Check the file system's server or disk.",
			Severity: check.Drain, Timeout: storageTimeout, BadRuns: 3, GoodRuns: 3, Child: childStorage, HangVerdict: check.Fail, Run: withSettings(writable)},
		{Name: "memory", Subject: "total and available memory (/proc/meminfo)", Remedy: "Look for a missing memory module, or correct `total` in [memory].",
			Severity: check.Drain, Timeout: 2 * time.Second, BadRuns: 2, Run: withSettings(memory)},
		{Name: "memory-idle", Subject: "available memory while no job runs (/proc/meminfo)", Remedy: "Remove files in /dev/shm and leftover processes; otherwise reboot.",
			Severity: check.Drain, Timeout: 4 * time.Second, BadRuns: 3, Child: childNode, HangVerdict: check.Unknown, Run: withSettings(idleMemory)},
		{Name: "hugepages", Subject: "total huge pages (/proc/meminfo)", Remedy: "Reserve them at boot, or correct `hugepages` in [memory].",
			Severity: check.WarnOnly, Timeout: 2 * time.Second, BadRuns: 2, Run: withSettings(hugePages)},
		{Name: "limits", Subject: "processes, including zombies, and open files, compared with the kernel's limits", Remedy: "Find the processes that hold so many.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, BadRuns: 2, Run: withSettings(limits)},
		{Name: "cgroup", Subject: "processes in the cgroups of ended jobs, and the controllers of Slurm's cgroup", Remedy: "End the processes; check Delegate= in slurmd's unit.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNode, HangVerdict: check.Unknown, Run: withSettings(cgroups)},
		{Name: "swap", Subject: "total swap (/proc/meminfo)", Remedy: "Turn the swap on, or correct `swap` in [memory].",
			Severity: check.WarnOnly, Timeout: 2 * time.Second, BadRuns: 2, Run: withSettings(swap)},
		{Name: "stuck", Subject: "processes in D state in several consecutive runs", Remedy: "Find in /proc/PID/stack what they wait for; if it is a driver, reboot.",
			Severity: check.Drain, Timeout: 4 * time.Second, GoodRuns: 2, Run: withSettings(stuck)},
		{Name: "clock", Subject: "whether the kernel reports the clock as synchronized, and its maximum error (adjtimex)", Remedy: "Start the time daemon, and verify that it reaches its servers.",
			Severity: check.Drain, Timeout: 2 * time.Second, BadRuns: 2, GoodRuns: 2, Run: withSettings(clock)},
		{Name: "kernel-log", Subject: "the kernel's log since boot: failed storage, hung tasks, machine checks", Remedy: "Read the kernel's log; reboot when the cause is removed. " + describeForget("kernel-log"),
			Severity: check.Drain, Timeout: 4 * time.Second, Run: withSettings(kernelLog)},
		{Name: "disk", Subject: "RAID arrays and NVMe controllers (sysfs)", Remedy: "Replace the disk.",
			Severity: check.Drain, Timeout: 4 * time.Second, BadRuns: 2, GoodRuns: 2, Run: withSettings(disk)},
		{Name: "edac", Subject: "the memory controllers' error counts (EDAC)", Remedy: "Replace the memory module that edac-util names, then reboot. " + describeForget("edac"),
			Severity: check.Drain, Timeout: 4 * time.Second, Run: withSettings(edac)},
		{Name: "munge", Subject: "whether munged creates a credential", Remedy: "Start munged; its log states the cause.",
			Severity: check.Drain, Timeout: 5 * time.Second, BadRuns: 2, Run: withSettings(munge)},
		{Name: "daemons", Subject: "processes listed in the configuration", Remedy: "Start the daemon.",
			Severity: check.Drain, Timeout: 4 * time.Second, BadRuns: 2, Run: withSettings(daemons)},
	}
}

// networkChecks returns the checks of networks and jails.
func networkChecks() []check.Check {
	return []check.Check{
		{Name: "default-route", Subject: "the node's default route and its interface", Remedy: "Bring the control network up, or correct `interface` in [network].",
			Severity: check.Drain, Timeout: 2 * time.Second, BadRuns: 2, Run: withSettings(defaultRoute)},
		{Name: "controller", Subject: "the path to slurmctld: its name, the route's interface, and a ping if it has answered one since boot", Remedy: "Check the control network and its routes, or correct `interface` and `controllers` in [network].",
			Severity: check.Drain, Timeout: 6 * time.Second, BadRuns: 3, GoodRuns: 2, Child: childControl, HangVerdict: check.Unknown, Run: withSettings(controller)},
		{Name: "rdma-ports", Subject: "state and rate of RDMA ports (sysfs)", Remedy: "Check the cable, transceiver, switch port and subnet manager.",
			Severity: check.Drain, Timeout: 4 * time.Second, BadRuns: 3, GoodRuns: 2, Child: childNode, HangVerdict: check.Fail, Run: withSettings(rdmaPorts)},
		{Name: "rdma-flaps", Subject: "how often the links of RDMA ports went down in the last hour", Remedy: "Clean or replace the cable and the transceiver.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNode, HangVerdict: check.Unknown, Run: withSettings(rdmaFlaps)},
		{Name: "rdma-errors", Subject: "growth of the error counters of RDMA ports", Remedy: "Clean or replace the cable and the transceiver.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNode, HangVerdict: check.Unknown, Run: withSettings(rdmaErrors)},
		{Name: "rdma-pause", Subject: "share of time for which RoCE ports were paused by received PFC and pause frames (ethtool, mlx5)", Remedy: "Find the receiver that cannot keep up; ethtool -S shows the counters.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNode, HangVerdict: check.Unknown, Run: withSettings(rdmaPause)},
		{Name: "rdma-gids", Subject: "GIDs of RoCE ports that are up (sysfs)", Remedy: "Bring the port's network interface up and give it an address.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, BadRuns: 2, Child: childNode, HangVerdict: check.Unknown, Run: withSettings(rdmaGIDs)},
		{Name: "vf", Subject: "cards, drivers and VFs, compared with the policies of network.toml", Remedy: "Run gojail vf apply on the node, then gojail check.",
			Severity: check.Drain, Timeout: 4 * time.Second, BadRuns: 2, GoodRuns: 2, Child: childNode, HangVerdict: check.Fail, Run: withSettings(vfs)},
		{Name: "vf-quarantine", Subject: "VFs in quarantine, which no job gets", Remedy: "Run gojail vf ls for the reason; lift the quarantine when the VF works again.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNode, HangVerdict: check.Unknown, Run: withSettings(quarantine)},
		{Name: "jail", Subject: "what `gojail check` reports as FAIL: plugin, library and storage in each run, what is in the jails every 10 minutes and after a change", Remedy: "Run gojail check on the node.",
			Severity: check.Drain, Timeout: 8 * time.Second, BadRuns: 2, GoodRuns: 2, Child: childJail, HangVerdict: check.Fail, HangText: recallJails, Run: withSettings(jails)},
		{Name: "jail-driver", Subject: "libraries of NVIDIA's driver in jails that provide it, as tasks see them", Remedy: "Repair the driver's files on the node, remove empty ones from the jail's own storage, then run gojail reload.",
			Severity: check.Drain, Timeout: 4 * time.Second, BadRuns: 2, GoodRuns: 2, Child: childJail, HangVerdict: check.Unknown, Run: withSettings(jailDriver)},
		{Name: "jail-leftovers", Subject: "jobs whose cleanup failed and has not been repeated since", Remedy: "Run gojail sweep on the node.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNode, HangVerdict: check.Unknown, Run: withSettings(leftovers)},
	}
}

// gpuChecks returns the checks of NVIDIA GPUs. The first one determines whether NVML answers.
func gpuChecks() []check.Check {
	return []check.Check{
		{Name: "gpu-driver", Subject: "whether NVML answers, and has the version of the loaded driver", Remedy: "If NVML is slow, start nvidia-persistenced with persistence mode. Otherwise reboot, which is also required after an update of the driver.",
			Severity: check.Drain, Timeout: 8 * time.Second, BadRuns: 2, GoodRuns: 2, Child: childGPU, HangVerdict: check.Fail, SlowReason: explainSlowDriver, Run: withSettings(gpuDriver)},
		{Name: "gpu-count", Subject: "GPUs in the configuration or slurm.conf, on the PCI bus, and in the driver", Remedy: "Reboot; if the GPU is still missing, have it serviced.",
			Severity: check.Drain, Timeout: 3 * time.Second, BadRuns: 2, GoodRuns: 2, Child: childGPU, HangVerdict: check.Unknown, Run: withSettings(gpuCount)},
		newGPUCheck("gpu-lost", check.Drain, "GPUs that the driver has lost or that require a reset", "Reset the GPU, or reboot.", newGPURun("no GPU is lost", gpuLost)),
		newGPUCheck("gpu-recovery", check.Drain, "the recovery action that the driver requests for a GPU", "Perform the requested action.", newGPURun("no GPU requires a recovery action", gpuRecovery)),
		newGPUCheck("gpu-ecc", check.Drain, "uncorrectable ECC errors since the driver was loaded", "Reset the GPU; if the errors recur, have it replaced.", gpuECC),
		newGPUCheck("gpu-rows", check.Drain, "remapped rows of GPU memory", "If remapping is pending, reset the GPU when it is idle; if it failed, have the GPU replaced.", newGPURun("no row remapping is pending or has failed", gpuRows)),
		newGPUCheck("gpu-pages", check.WarnOnly, "retired pages of GPU memory, before Ampere", "Reset the GPU; have it replaced when few pages are left.", newGPURun("no page retirement is pending", gpuPages)),
		newGPUCheck("gpu-nvlink", check.Drain, "active NVLinks", "Reset the GPUs; if the fault recurs, have the baseboard and the NVLinks serviced.", newGPURun("all NVLinks are active", gpuLinks)),
		newGPUCheck("gpu-nvlink-errors", check.WarnOnly, "growth of the error counters of NVLinks", "Reset the GPUs; if the fault recurs, have the baseboard and the NVLinks serviced.", gpuLinkErrors),
		newGPUCheck("gpu-fabric", check.Drain, "whether GPUs have joined the NVLink fabric", "Read the fabric manager's log.", newGPURun("GPUs have joined the NVLink fabric, if there is one", gpuFabric)),
		newGPUCheck("gpu-pcie", check.Drain, "PCIe lanes and generation in use", "Reseat the GPU.", newGPURun("GPUs use all their PCIe lanes", gpuPCIe)),
		{Name: "gpu-clocks", Subject: "GPUs slowed down by their own hardware in 6 of the last 20 runs", Remedy: "Check cooling and power supply.",
			Severity: check.Drain, Timeout: 3 * time.Second, GoodRuns: 2, Child: childGPU, HangVerdict: check.Unknown, Run: withSettings(gpuClocks)},
		newGPUCheck("gpu-temperature", check.WarnOnly, "temperatures, compared with the GPUs' own thresholds", "Check the cooling.", newGPURun("no GPU is too hot", gpuTemperature)),
		newGPUCheck("gpu-persistence", check.WarnOnly, "persistence mode", "Start nvidia-persistenced.", newGPURun("persistence mode is on", gpuPersistence)),
		newGPUCheck("gpu-clock-setting", check.WarnOnly, "application clocks, compared with the vendor's defaults", "Run nvidia-smi -rac.", newGPURun("no application clock is lowered", gpuClockSetting)),
		newGPUCheck("gpu-mig", check.WarnOnly, "MIG mode, compared with `mig` in [gpu]", "Run nvidia-smi -mig 1 or -mig 0, and reset the GPUs.", gpuMIG),
		newGPUCheck("gpu-vbios", check.WarnOnly, "whether GPUs of one model have the same vBIOS", "Update the vBIOS of the GPU that differs.", newGPURun("GPUs of one model have the same vBIOS", gpuVBIOS)),
		{Name: "gpu-peermem", Subject: "whether RDMA can reach GPU memory: nvidia_peermem, or the open kernel modules", Remedy: "Load nvidia_peermem at boot.",
			Severity: check.Drain, Timeout: 3 * time.Second, BadRuns: 2, GoodRuns: 2, Child: childGPU, HangVerdict: check.Unknown, Run: withSettings(gpuPeermem)},
		newGPUCheck("gpu-leftovers", check.WarnOnly, "users' processes on GPUs outside of any job; needs proctrack/cgroup", "End the process.", newGPURun("no process is left on a GPU", gpuLeftovers)),
		{Name: "xid", Subject: "the driver's XIDs in the kernel's log since boot", Remedy: "Look up the number in NVIDIA's XID catalogue; reset the GPU, or reboot. " + describeForget("xid"),
			Severity: check.Drain, Timeout: 4 * time.Second, Run: withSettings(xid)},
		{Name: "nvidia-smi", Subject: "whether nvidia-smi answers", Remedy: "Run nvidia-smi; reboot if it hangs.",
			Severity: check.Drain, Timeout: 8 * time.Second, BadRuns: 2, GoodRuns: 2, Child: childGPU, HangVerdict: check.Fail, SlowReason: explainSlowDriver, Run: withSettings(nvidiaSMI)},
		{Name: "gpu-inforom", Subject: "the checksums of GPUs' infoROMs, once a day (NVML)", Remedy: "Reboot; if the fault remains, have the GPU serviced.",
			Severity: check.WarnOnly, Timeout: inforomTimeout, Child: childInforom, HangVerdict: check.Unknown, Run: withSettings(gpuInforom)},
	}
}

// nhcChecks returns the checks that evaluate the lines of an nhc.conf.
func nhcChecks() []check.Check {
	return []check.Check{
		{Name: "nhc", Subject: "assertions of nhc.conf about hardware, mounts, processes and sockets", Remedy: "Read the line in nhc.conf; gojail-healthcheck list shows how it was parsed.",
			Severity: check.Drain, Timeout: 4 * time.Second, BadRuns: 2, GoodRuns: 2, Child: childNHC, HangVerdict: check.Unknown, Run: withSettings(newNHCCheck(nhc.Node))},
		{Name: "nhc-files", Subject: "assertions of nhc.conf about files and space", Remedy: "Read the line in nhc.conf, and check the file system.",
			Severity: check.Drain, Timeout: storageTimeout, BadRuns: 3, GoodRuns: 3, Child: childNHCFiles, HangVerdict: check.Fail, Run: withSettings(newNHCCheck(nhc.Storage))},
		{Name: "nhc-command", Subject: "commands and pings of nhc.conf", Remedy: "Run the command of the line in nhc.conf.",
			Severity: check.Drain, Timeout: 8 * time.Second, BadRuns: 2, GoodRuns: 2, Child: childNHCCommand, HangVerdict: check.Unknown, Run: withSettings(newNHCCheck(nhc.Command))},
		{Name: "nhc-config", Subject: "lines of nhc.conf that cannot be parsed or are only partly performed", Remedy: "Rewrite them, or switch this check off; gojail-healthcheck list shows them.",
			Severity: check.WarnOnly, Timeout: 4 * time.Second, Child: childNHC, HangVerdict: check.Unknown, Run: withSettings(nhcConfig)},
	}
}

// describeForget returns the remedy of a check that keeps its findings until the node boots.
func describeForget(check string) string {
	return "After a repair without a reboot, run: gojail-healthcheck forget " + check + "."
}

// newGPUCheck returns a row for a check that uses the shared NVML query.
func newGPUCheck(name string, severity check.Severity, looks, do string, l checkFunc) check.Check {
	return check.Check{Name: name, Subject: looks + " (NVML)", Remedy: do, Severity: severity, Timeout: 3 * time.Second,
		BadRuns: 2, GoodRuns: 2, Child: childGPU, HangVerdict: check.Unknown, Run: withSettings(l)}
}

// checkFunc is a check that takes the site's settings as an argument.
type checkFunc func(ctx context.Context, h *check.Host, s *check.Settings) check.Finding

// withSettings binds the host's settings to a check function.
func withSettings(l checkFunc) func(context.Context, *check.Host) check.Finding {
	return func(ctx context.Context, h *check.Host) check.Finding { return l(ctx, h, h.Settings) }
}
