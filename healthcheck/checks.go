// SPDX-License-Identifier: Apache-2.0

package healthcheck

import "time"

// Names of children. Few of them: a process costs more than most checks.
const (
	childStorage = "storage"
	childNode    = "node"
	childGPU     = "gpu"
)

// Checks is every check there is, in the order in which they are shown.
func Checks() []Check {
	const s, wait = time.Second, 6 * time.Second // a little more than storagePatience
	return []Check{
		// The node.
		{Name: "fs-mounted", Looks: "the configured file systems in the mount table", Do: "Mount the file system, or look in the kernel's log why it became read-only.",
			Severity: Drain, Timeout: 2 * s, Good: 2, Run: with(mounted)},
		{Name: "fs-full", Looks: "space and inodes of the configured file systems (statfs)", Do: "Make room; where it does not answer see to its server or disk.",
			Severity: Drain, Timeout: wait, Bad: 3, Good: 3, Child: childStorage, Hang: Fail, Run: with(full)},
		{Name: "fs-write", Looks: "a small file written to each configured file system, flushed and removed", Do: "See to the file system's server or disk.",
			Severity: Drain, Timeout: wait, Bad: 3, Good: 3, Child: childStorage, Hang: Fail, Run: with(writable)},
		{Name: "memory", Looks: "memory in all, and available (/proc/meminfo)", Do: "Look for a memory module that is gone, or correct `total` in [memory].",
			Severity: WarnOnly, Timeout: 2 * s, Bad: 2, Run: with(memory)},
		{Name: "swap", Looks: "swap in all (/proc/meminfo)", Do: "Turn the swap on, or correct `swap` in [memory].",
			Severity: WarnOnly, Timeout: 2 * s, Bad: 2, Run: with(swap)},
		{Name: "stuck", Looks: "processes that several runs in a row see in D state", Do: "Find what they wait for in /proc/PID/stack; a driver's need a reboot.",
			Severity: Drain, Timeout: 4 * s, Good: 2, Run: with(stuck)},
		{Name: "clock", Looks: "the kernel's word about the clock (adjtimex)", Do: "Start the time daemon, and see whether it reaches its servers.",
			Severity: Drain, Timeout: 2 * s, Bad: 2, Good: 2, Run: with(clock)},
		{Name: "kernel-log", Looks: "the kernel's log since boot: storage that failed, hung tasks, machine checks", Do: "Read the kernel's log; reboot when the cause is gone.",
			Severity: Drain, Timeout: 4 * s, Run: with(kernelLog)},
		{Name: "disk", Looks: "RAID arrays and NVMe controllers (sysfs)", Do: "Replace the disk.",
			Severity: Drain, Timeout: 4 * s, Bad: 2, Good: 2, Run: with(disk)},
		{Name: "edac", Looks: "the memory controllers' error counts (EDAC)", Do: "Replace the memory module that edac-util names, then reboot.",
			Severity: Drain, Timeout: 4 * s, Run: with(edac)},
		{Name: "munge", Looks: "munged, by asking it for a credential", Do: "Start munged; its log tells what is wrong.",
			Severity: Drain, Timeout: 5 * s, Bad: 2, Run: with(munge)},
		{Name: "daemons", Looks: "processes that the configuration names", Do: "Start the daemon.",
			Severity: Drain, Timeout: 4 * s, Bad: 2, Run: with(daemons)},
		// Networks and jails.
		{Name: "default-route", Looks: "the node's default route and its interface", Do: "Bring the control network up, or correct `interface` in [network].",
			Severity: Drain, Timeout: 2 * s, Bad: 2, Run: with(defaultRoute)},
		{Name: "rdma-ports", Looks: "state and rate of RDMA ports (sysfs)", Do: "See to cable, transceiver, switch port and subnet manager.",
			Severity: Drain, Timeout: 4 * s, Bad: 3, Good: 2, Child: childNode, Hang: Fail, Run: with(rdmaPorts)},
		{Name: "rdma-flaps", Looks: "how often the links of RDMA ports went down in the last hour", Do: "Clean or replace cable and transceiver.",
			Severity: WarnOnly, Timeout: 4 * s, Child: childNode, Hang: Unknown, Run: with(rdmaFlaps)},
		{Name: "vf", Looks: "cards, drivers and VFs, against the policies of network.toml", Do: "Run gojail vf apply on the node, then gojail check.",
			Severity: Drain, Timeout: 4 * s, Bad: 2, Good: 2, Child: childNode, Hang: Fail, Run: with(vfs)},
		{Name: "vf-quarantine", Looks: "VFs that no job gets", Do: "See gojail vf ls for the reason; lift it when the VF is well.",
			Severity: WarnOnly, Timeout: 4 * s, Child: childNode, Hang: Unknown, Run: with(quarantine)},
		{Name: "jail", Looks: "what `gojail check` calls FAIL: storage, mount targets, plugin and library", Do: "Run gojail check on the node.",
			Severity: Drain, Timeout: 8 * s, Bad: 2, Good: 2, Child: childNode, Hang: Fail, Run: with(jails)},
		{Name: "jail-leftovers", Looks: "jobs that gojail knows of and that have no process of Slurm's", Do: "Run gojail sweep on the node.",
			Severity: WarnOnly, Timeout: 4 * s, Child: childNode, Hang: Unknown, Run: with(leftovers)},
		// GPUs. The first one finds out whether NVML answers at all.
		{Name: "gpu-driver", Looks: "whether NVML answers, and is of the loaded driver's version", Do: "Reboot; after an update of the driver that is what is missing.",
			Severity: Drain, Timeout: 8 * s, Bad: 2, Good: 2, Child: childGPU, Hang: Fail, Run: with(gpuDriver)},
		{Name: "gpu-count", Looks: "GPUs of the configuration, on the PCI bus, and in the driver", Do: "Reboot; if the GPU stays away, have it looked at.",
			Severity: Drain, Timeout: 3 * s, Bad: 2, Good: 2, Child: childGPU, Hang: Unknown, Run: with(gpuCount)},
		gpu("gpu-lost", Drain, "GPUs that the driver has lost, or that want a reset", "Reset the GPU, or reboot.", "no GPU is lost", gpuLost),
		gpu("gpu-recovery", Drain, "the recovery action that the driver wants for a GPU", "Do what it says.", "no GPU wants a recovery action", gpuRecovery),
		gpu("gpu-ecc", Drain, "errors that ECC could not correct, since the driver was loaded", "Reset the GPU; if it comes again, have it replaced.", "no uncorrectable errors", gpuECC),
		gpu("gpu-rows", Drain, "remapped rows of GPU memory", "Pending: reset the GPU when it is idle. Failed: have it replaced.", "no row remapping is pending or has failed", gpuRows),
		gpu("gpu-pages", WarnOnly, "retired pages of GPU memory, before Ampere", "Reset the GPU; have it replaced when few pages are left.", "no page retirement is pending", gpuPages),
		gpu("gpu-nvlink", Drain, "active NVLinks", "Reset the GPUs; if it comes again, have baseboard and NVLinks looked at.", "all NVLinks are active", gpuLinks),
		gpu("gpu-fabric", Drain, "whether GPUs have joined the NVLink fabric", "See to the fabric manager's log.", "GPUs have joined the NVLink fabric, if there is one", gpuFabric),
		gpu("gpu-pcie", WarnOnly, "PCIe lanes in use", "Reseat the GPU.", "GPUs use all their PCIe lanes", gpuPCIe),
		{Name: "gpu-clocks", Looks: "GPUs that their own hardware slowed down in 6 of the last 20 runs", Do: "See to cooling and power.",
			Severity: Drain, Timeout: 3 * s, Good: 2, Child: childGPU, Hang: Unknown, Run: with(gpuClocks)},
		gpu("gpu-temperature", WarnOnly, "temperatures, against the GPUs' own thresholds", "See to cooling.", "no GPU is too hot", gpuTemperature),
		gpu("gpu-persistence", WarnOnly, "persistence mode", "Start nvidia-persistenced.", "persistence mode is on", gpuPersistence),
		gpu("gpu-leftovers", WarnOnly, "users' processes on GPUs outside of any job; needs proctrack/cgroup", "End the process.", "no process is left on a GPU", gpuLeftovers),
		{Name: "xid", Looks: "the driver's XIDs in the kernel's log since boot", Do: "Look the number up in NVIDIA's XID catalogue; reset the GPU, or reboot.",
			Severity: Drain, Timeout: 4 * s, Run: with(xid)},
		{Name: "nvidia-smi", Looks: "whether nvidia-smi answers", Do: "Run it; reboot if it hangs.",
			Severity: Drain, Timeout: 8 * s, Bad: 2, Good: 2, Child: childGPU, Hang: Fail, Run: with(nvidiaSMI)},
	}
}

// gpu is a row for what one look at NVML has told.
func gpu(name string, severity Severity, looks, do, good string, l gpuLook) Check {
	return Check{Name: name, Looks: looks + " (NVML)", Do: do, Severity: severity, Timeout: 3 * time.Second,
		Bad: 2, Good: 2, Child: childGPU, Hang: Unknown, Run: with(gpus(good, l))}
}
