// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memory compares with what Slurm believes the node has: a module that has gone
// shows here, and a job would be refused memory that was promised.
func memory(_ context.Context, h *Host, s *Settings) Finding {
	has, ok := meminfo(h)
	if !ok {
		return Found(Unknown, "cannot understand %s/meminfo", h.Roots.Proc)
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

func swap(_ context.Context, h *Host, s *Settings) Finding {
	has, ok := meminfo(h)
	switch {
	case s.Memory.Swap == 0:
		return Found(NotApplicable, "no swap is configured")
	case !ok:
		return Found(Unknown, "cannot understand %s/meminfo", h.Roots.Proc)
	case has["SwapTotal"] < s.Memory.Swap:
		return Found(Fail, "less swap than the configured %d MiB", s.Memory.Swap)
	}
	return Found(OK, "swap is as configured")
}

// meminfo is in MiB; false if a key that every kernel has is missing (proc_meminfo(5)).
func meminfo(h *Host) (map[string]uint64, bool) {
	text, err := os.ReadFile(filepath.Join(h.Roots.Proc, "meminfo"))
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
