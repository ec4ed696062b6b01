// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/procfs"
)

// memory compares the memory with the configured amount, which Slurm relies on: a failed module
// shows here, and a job would be denied memory that was promised.
func memory(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	has, ok := readMeminfo(h)
	if !ok {
		return check.NewFinding(check.Unknown, "cannot parse %s/meminfo", h.Roots.Proc)
	}
	var p problems
	p.addNote("total %d MiB, available %d MiB", has["MemTotal"], has["MemAvailable"])
	if want := s.Memory.Total; has["MemTotal"] < want {
		p.addFailure("less memory than the configured %d MiB", want)
	}
	if want := s.Memory.Available; has["MemAvailable"] < want {
		p.addWarning("less than %d MiB of memory is available", want)
	}
	return p.buildFinding("memory is as configured")
}

// swap compares the total swap with the configuration.
func swap(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	has, ok := readMeminfo(h)
	switch {
	case s.Memory.Swap == 0:
		return check.NewFinding(check.NotApplicable, "no swap is configured")
	case !ok:
		return check.NewFinding(check.Unknown, "cannot parse %s/meminfo", h.Roots.Proc)
	case has["SwapTotal"] < s.Memory.Swap:
		return check.NewFinding(check.Fail, "less swap than the configured %d MiB", s.Memory.Swap)
	}
	return check.NewFinding(check.OK, "swap is as configured")
}

// readMeminfo returns /proc/meminfo in MiB; false if a key that every kernel has is missing
// (proc_meminfo(5)).
func readMeminfo(h *check.Host) (map[string]uint64, bool) {
	values, _ := procfs.ReadMeminfo(h.Roots.Proc) // none of a file that cannot be read
	has := map[string]uint64{}
	for key, value := range values {
		has[key] = uint64(value / 1024)
	}
	_, available := has["MemAvailable"]
	_, swap := has["SwapTotal"]
	return has, has["MemTotal"] > 0 && available && swap
}

// hugePages compares the pool of huge pages of the default size with the configuration.
func hugePages(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	values, _ := procfs.ReadMeminfo(h.Roots.Proc)
	has, known := values["HugePages_Total"]
	switch want := s.Memory.HugePages; {
	case want == 0:
		return check.NewFinding(check.NotApplicable, "no huge pages are configured")
	case !known:
		return check.NewFinding(check.Unknown, "cannot parse %s/meminfo", h.Roots.Proc)
	case uint64(has) < want:
		return check.NewFinding(check.Fail, "fewer huge pages than the configured %d", want)
	}
	return check.NewFinding(check.OK, "huge pages are as configured")
}

// idleMemory reports memory that is unavailable while no job runs: held in /dev/shm, by kernel
// allocations that cannot be reclaimed, or by a driver. Memory left by users, in files or
// processes, is a warning: a job could otherwise drain each node on which it ran.
func idleMemory(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	want := s.Memory.Idle
	if want == 0 {
		return check.NewFinding(check.NotApplicable, "no limit for the memory of an idle node is configured")
	}
	has, ok := readMeminfo(h)
	running, err := findSteps(h)
	switch {
	case !ok:
		return check.NewFinding(check.Unknown, "cannot parse %s/meminfo", h.Roots.Proc)
	case err != nil:
		return check.NewFinding(check.Unknown, "cannot list processes: %v", err)
	case len(running.jobs) > 0:
		return check.NewFinding(check.OK, "jobs are running and may use the memory")
	case has["MemAvailable"] < want && has["MemAvailable"]+has["Shmem"]+has["AnonPages"] >= want:
		return check.NewFinding(check.Warn,
			"no job runs, but files in memory or processes leave less than %d MiB available", want)
	case has["MemAvailable"] < want:
		return check.NewFinding(check.Fail, "no job runs, but less than %d MiB of memory is available", want)
	}
	return check.NewFinding(check.OK, "the idle node has its memory available")
}
