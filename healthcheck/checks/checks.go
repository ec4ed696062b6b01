// SPDX-License-Identifier: Apache-2.0

// Package checks implements the checks that detect a faulty node before a job does: the table
// is in checks.go, and each check has its own file.
//
// A check only observes; it changes nothing and communicates only with the kernel, NVML, local
// daemons and the hosts of slurmctld. Package run handles deadlines and child processes;
// packages drain and report handle the consequences of a result. The package is not for
// anything that loads a node: a check that takes the time of a job is an active check.
//
// The package needs kernel 5.12 or later, as the rest of gojail does, and cgroup v1 or v2. The
// program must be bound lazily (ld -z lazy, without LD_BIND_NOW), as go-nvml requires: NVML's
// functions exist only on nodes with a driver.
package checks

import (
	"context"
	"sync"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/nhc"
)

// table has the checks in display order. What each looks at, and what to do when it fails, is in texts.go.
//
//	name, consequence of a Fail, timeout, runs until bad and until good, child process, if it exceeds its timeout,
//	function
var table = [...]row{
	{"fs-mounted", check.Drain, 2 * time.Second, 1, 2, childKernel, unknown, mounted},
	{"fs-full", check.Drain, 6 * time.Second, 3, 3, childStorage, fails, full},
	{"fs-write", check.Drain, 6 * time.Second, 3, 3, childStorage, fails, writable},
	{"memory", check.Drain, 2 * time.Second, 2, 1, childKernel, unknown, memory},
	{"memory-idle", check.Drain, 4 * time.Second, 3, 1, childNode, unknown, idleMemory},
	{"hugepages", check.WarnOnly, 2 * time.Second, 2, 1, childKernel, unknown, hugePages},
	{"limits", check.WarnOnly, 4 * time.Second, 2, 1, childKernel, unknown, limits},
	{"cgroup", check.WarnOnly, 4 * time.Second, 1, 1, childNode, unknown, cgroups},
	{"swap", check.WarnOnly, 2 * time.Second, 2, 1, childKernel, unknown, swap},
	{"stuck", check.Drain, 4 * time.Second, 1, 2, childKernel, unknown, stuck},
	{"clock", check.Drain, 2 * time.Second, 2, 2, childKernel, unknown, clock},
	{"kernel-log", check.Drain, 4 * time.Second, 1, 1, childKernel, unknown, kernelLog},
	{"disk", check.Drain, 4 * time.Second, 2, 2, childKernel, unknown, disk},
	{"edac", check.Drain, 4 * time.Second, 1, 1, childKernel, unknown, edac},
	{"munge", check.Drain, 5 * time.Second, 2, 1, childControl, unknown, munge},
	{"daemons", check.Drain, 4 * time.Second, 2, 1, childKernel, unknown, daemons},

	{"default-route", check.Drain, 2 * time.Second, 2, 1, childKernel, unknown, defaultRoute},
	{"controller", check.Drain, 6 * time.Second, 3, 2, childControl, unknown, controller},
	{"rdma-ports", check.Drain, 4 * time.Second, 3, 2, childNode, fails, rdmaPorts},
	{"rdma-flaps", check.WarnOnly, 4 * time.Second, 1, 1, childNode, unknown, rdmaFlaps},
	{"rdma-errors", check.WarnOnly, 4 * time.Second, 1, 1, childNode, unknown, rdmaErrors},
	{"rdma-pause", check.WarnOnly, 4 * time.Second, 1, 1, childNode, unknown, rdmaPause},
	{"rdma-gids", check.WarnOnly, 4 * time.Second, 2, 1, childNode, unknown, rdmaGIDs},
	{"vf", check.Drain, 4 * time.Second, 2, 2, childNode, fails, vfs},
	{"vf-quarantine", check.WarnOnly, 4 * time.Second, 1, 1, childNode, unknown, quarantine},
	{"jail", check.Drain, 8 * time.Second, 2, 2, childJail, failsAgain, jails},
	{"jail-driver", check.Drain, 4 * time.Second, 2, 2, childJail, unknown, jailDriver},
	{"jail-leftovers", check.WarnOnly, 4 * time.Second, 1, 1, childNode, unknown, leftovers},

	{"gpu-driver", check.Drain, 8 * time.Second, 2, 2, childGPU, failsUnlessSlow, gpuDriver},
	{"gpu-count", check.Drain, 3 * time.Second, 2, 2, childGPU, unknown, gpuCount},
	{"gpu-lost", check.Drain, 3 * time.Second, 2, 2, childGPU, unknown, newGPURun("no GPU is lost", gpuLost)},
	{"gpu-recovery", check.Drain, 3 * time.Second, 2, 2, childGPU, unknown,
		newGPURun("no GPU requires a recovery action", gpuRecovery)},
	{"gpu-ecc", check.Drain, 3 * time.Second, 2, 2, childGPU, unknown, gpuECC},
	{"gpu-rows", check.Drain, 3 * time.Second, 2, 2, childGPU, unknown,
		newGPURun("no row remapping is pending or has failed", gpuRows)},
	{"gpu-pages", check.WarnOnly, 3 * time.Second, 2, 2, childGPU, unknown, newGPURun("no page retirement is pending",
		gpuPages)},
	{"gpu-nvlink", check.Drain, 3 * time.Second, 2, 2, childGPU, unknown,
		newGPURun("all NVLinks are active", gpuLinks)},
	{"gpu-nvlink-errors", check.WarnOnly, 3 * time.Second, 2, 2, childGPU, unknown, gpuLinkErrors},
	{"gpu-fabric", check.Drain, 3 * time.Second, 5, 2, childGPU, unknown,
		newGPURun("GPUs have joined the NVLink fabric, if there is one", gpuFabric)},
	{"gpu-pcie", check.Drain, 3 * time.Second, 2, 2, childGPU, unknown, newGPURun("GPUs use all their PCIe lanes",
		gpuPCIe)},
	{"gpu-clocks", check.Drain, 3 * time.Second, 1, 2, childGPU, unknown, gpuClocks},
	{"gpu-temperature", check.WarnOnly, 3 * time.Second, 2, 2, childGPU, unknown,
		newGPURun("no GPU is too hot", gpuTemperature)},
	{"gpu-persistence", check.WarnOnly, 3 * time.Second, 2, 2, childGPU, unknown,
		newGPURun("persistence mode is on", gpuPersistence)},
	{"gpu-clock-setting", check.WarnOnly, 3 * time.Second, 2, 2, childGPU, unknown,
		newGPURun("no application clock is lowered", gpuClockSetting)},
	{"gpu-mig", check.WarnOnly, 3 * time.Second, 2, 2, childGPU, unknown, gpuMIG},
	{"gpu-vbios", check.WarnOnly, 3 * time.Second, 2, 2, childGPU, unknown,
		newGPURun("GPUs of one model have the same vBIOS", gpuVBIOS)},
	{"gpu-peermem", check.Drain, 3 * time.Second, 2, 2, childGPU, unknown, gpuPeermem},
	{"gpu-leftovers", check.WarnOnly, 3 * time.Second, 2, 2, childGPU, unknown, newGPURun("no process is left on a GPU",
		gpuLeftovers)},
	{"xid", check.Drain, 4 * time.Second, 1, 1, childKernel, unknown, xid},
	{"nvidia-smi", check.Drain, 8 * time.Second, 2, 2, childGPU, failsUnlessSlow, nvidiaSMI},
	{"gpu-inforom", check.WarnOnly, inforomTimeout, 1, 1, childInforom, unknown, gpuInforom},

	{"nhc", check.Drain, 4 * time.Second, 2, 2, childNHC, unknown, newNHCCheck(nhc.Node)},
	{"nhc-files", check.Drain, 6 * time.Second, 3, 3, childNHCFiles, failsNHC, newNHCCheck(nhc.Storage)},
	{"nhc-command", check.Drain, 8 * time.Second, 2, 2, childNHCCommand, unknown, newNHCCheck(nhc.Command)},
	{"nhc-config", check.WarnOnly, 4 * time.Second, 1, 1, childNHCCommand, unknown, nhcConfig},
}

// row is one line of the table: the fields of a check.Check.
type row struct {
	name      string
	severity  check.Severity
	timeout   time.Duration
	bad, good int
	child     string
	hang      hang
	run       checkFunc
}

// Names of child processes. There are few, since a process costs more than most checks.
const (
	childKernel  = "kernel" // what is read there does not hang
	childStorage = "storage"
	childNode    = "node"
	childJail    = "jail" // its storage can hang, and must not keep the checks of the node from running
	childGPU     = "gpu"
	childInforom = "inforom"
	childControl = "control" // name services and munged can take long
	// The assertions of nhc.conf can hang in three ways.
	childNHC        = "nhc"
	childNHCFiles   = "nhc-files"
	childNHCCommand = "nhc-command"
)

// hang is the result of a check that exceeds its timeout.
type hang struct {
	verdict           check.Verdict
	text, slow, spare func(h *check.Host) string // HangText, SlowReason and SpareReason of check.Check
}

var (
	unknown         = hang{verdict: check.Unknown}
	fails           = hang{verdict: check.Fail}
	failsAgain      = hang{verdict: check.Fail, text: recallJails}
	failsNHC        = hang{verdict: check.Fail, spare: recallQuiet}
	failsUnlessSlow = hang{verdict: check.Fail, slow: explainSlowDriver}
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
	all := make([]check.Check, 0, len(table))
	for _, r := range table {
		all = append(all, check.Check{
			Name: r.name, Subject: texts[r.name].subject, Remedy: texts[r.name].remedy, Severity: r.severity,
			Timeout: r.timeout,
			BadRuns: r.bad, GoodRuns: r.good, Child: r.child, HangVerdict: r.hang.verdict, HangText: r.hang.text,
			SlowReason: r.hang.slow, SpareReason: r.hang.spare, Run: withSettings(r.run),
		})
	}
	return all
})

// checkFunc is a check that takes the site's settings as an argument.
type checkFunc func(ctx context.Context, h *check.Host, s *check.Settings) check.Finding

// withSettings binds the host's settings to a check function.
func withSettings(l checkFunc) func(context.Context, *check.Host) check.Finding {
	return func(ctx context.Context, h *check.Host) check.Finding { return l(ctx, h, h.Settings) }
}
