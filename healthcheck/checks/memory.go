// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
)

// memory compares with what Slurm believes the node has: a module that has gone
// shows here, and a job would be refused memory that was promised.
func memory(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	has, ok := meminfo(h)
	if !ok {
		return check.Found(check.Unknown, "cannot understand %s/meminfo", h.Roots.Proc)
	}
	var p problems
	p.note("total %d MiB, available %d MiB", has["MemTotal"], has["MemAvailable"])
	if want := s.Memory.Total; has["MemTotal"] < want {
		p.failed("less memory than the configured %d MiB", want)
	}
	if want := s.Memory.Available; has["MemAvailable"] < want {
		p.warned("less than %d MiB of memory is available", want)
	}
	return p.finding("memory is as configured")
}

func swap(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	has, ok := meminfo(h)
	switch {
	case s.Memory.Swap == 0:
		return check.Found(check.NotApplicable, "no swap is configured")
	case !ok:
		return check.Found(check.Unknown, "cannot understand %s/meminfo", h.Roots.Proc)
	case has["SwapTotal"] < s.Memory.Swap:
		return check.Found(check.Fail, "less swap than the configured %d MiB", s.Memory.Swap)
	}
	return check.Found(check.OK, "swap is as configured")
}

// meminfo is in MiB; false if a key that every kernel has is missing (proc_meminfo(5)).
func meminfo(h *check.Host) (map[string]uint64, bool) {
	text, err := read(filepath.Join(h.Roots.Proc, "meminfo"))
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

// hugePages compares the pool of huge pages, of the default size, with the configuration.
func hugePages(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	text, err := read(filepath.Join(h.Roots.Proc, "meminfo"))
	_, rest, found := strings.Cut(string(text), "HugePages_Total:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	has, err2 := strconv.ParseUint(number, 10, 64)
	switch want := s.Memory.HugePages; {
	case want == 0:
		return check.Found(check.NotApplicable, "no huge pages are configured")
	case err != nil || !found || err2 != nil:
		return check.Found(check.Unknown, "cannot understand %s/meminfo", h.Roots.Proc)
	case has < want:
		return check.Found(check.Fail, "fewer huge pages than the configured %d", want)
	}
	return check.Found(check.OK, "huge pages are as configured")
}

// idleMemory sees memory that is gone while no job runs: left in /dev/shm, in a
// cache that is not one, or by a driver. What users have left, files in memory and
// processes, is a warning: a job could drain each node that it was on.
func idleMemory(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	want := s.Memory.Idle
	if want == 0 {
		return check.Found(check.NotApplicable, "no memory of an idle node is configured")
	}
	has, ok := meminfo(h)
	jobs, err := stepJobs(h)
	switch {
	case !ok:
		return check.Found(check.Unknown, "cannot understand %s/meminfo", h.Roots.Proc)
	case err != nil:
		return check.Found(check.Unknown, "cannot list processes: %v", err)
	case len(jobs) > 0:
		return check.Found(check.OK, "jobs run, and may have the memory")
	case has["MemAvailable"] < want && has["MemAvailable"]+has["Shmem"]+has["AnonPages"] >= want:
		return check.Found(check.Warn, "no job runs, and files in memory or processes leave less than %d MiB available", want)
	case has["MemAvailable"] < want:
		return check.Found(check.Fail, "no job runs, and less than %d MiB of memory is available", want)
	}
	return check.Found(check.OK, "an idle node has its memory")
}
