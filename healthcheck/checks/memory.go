// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
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
	text, err := readFile(filepath.Join(h.Roots.Proc, "meminfo"))
	if err != nil {
		return nil, false
	}
	has := map[string]uint64{}
	for row := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(row, ":")
		fields := strings.Fields(value)
		if len(fields) != 2 || fields[1] != "kB" {
			continue
		}
		if n, err := strconv.ParseUint(fields[0], 10, 64); err == nil {
			has[key] = n / 1024
		}
	}
	_, available := has["MemAvailable"]
	_, swap := has["SwapTotal"]
	return has, has["MemTotal"] > 0 && available && swap
}

// hugePages compares the pool of huge pages of the default size with the configuration.
func hugePages(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	text, err := readFile(filepath.Join(h.Roots.Proc, "meminfo"))
	_, rest, found := strings.Cut(string(text), "HugePages_Total:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	has, err2 := strconv.ParseUint(number, 10, 64)
	switch want := s.Memory.HugePages; {
	case want == 0:
		return check.NewFinding(check.NotApplicable, "no huge pages are configured")
	case err != nil || !found || err2 != nil:
		return check.NewFinding(check.Unknown, "cannot parse %s/meminfo", h.Roots.Proc)
	case has < want:
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
		return check.NewFinding(check.Warn, "no job runs, but files in memory or processes leave less than %d MiB available", want)
	case has["MemAvailable"] < want:
		return check.NewFinding(check.Fail, "no job runs, but less than %d MiB of memory is available", want)
	}
	return check.NewFinding(check.OK, "the idle node has its memory available")
}
