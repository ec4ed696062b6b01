// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
)

// disk looks at RAID arrays and NVMe controllers as sysfs shows them, without I/O to them.
func disk(_ context.Context, h *check.Host, _ *check.Settings) check.Finding {
	var p problems
	seen := 0
	for _, dir := range matches(h.Roots.Sys, "block/md*/md") {
		if isContainer(dir) {
			continue
		}
		name := filepath.Base(filepath.Dir(dir))
		state, ok := sysText(dir, "array_state")
		degraded, ok2 := sysNumber(dir, "degraded") // only arrays with redundancy have it
		seen++
		switch {
		case !ok:
			p.unclear("the state of %s cannot be read", name)
		case state == "inactive", state == "broken", state == "suspended":
			p.failed("RAID array %s is %.12s", name, state)
		case ok2 && degraded > 0:
			p.warned("RAID array %s is degraded", name)
		}
	}
	for _, dir := range matches(h.Roots.Sys, "class/nvme/nvme*") {
		state, ok := sysText(dir, "state")
		name := filepath.Base(dir)
		seen++
		switch state {
		case "live":
		case "new", "connecting", "resetting":
			p.warned("%s is %s", name, state)
		case "dead", "deleting", "deleting (no IO)":
			p.failed("%s is %s", name, state)
		default:
			if !ok {
				p.unclear("the state of %s cannot be read", name)
			} else {
				p.unclear("the state of %s is not understood", name)
			}
		}
	}
	if seen == 0 {
		return check.Found(check.NotApplicable, "the node has neither RAID arrays nor NVMe")
	}
	return p.finding("RAID arrays and NVMe controllers are well")
}

// isContainer tells of an md device that is no array: it holds the metadata of arrays
// ("external:imsm"; theirs is "external:/md127/0") and is always inactive (mdadm(8)).
func isContainer(dir string) bool {
	version, _ := sysText(dir, "metadata_version")
	return strings.HasPrefix(version, "external:") && !strings.HasPrefix(version, "external:/") && !strings.HasPrefix(version, "external:-")
}

// edac is the memory controllers' count of errors since boot.
func edac(_ context.Context, h *check.Host, _ *check.Settings) check.Finding {
	dirs := matches(h.Roots.Sys, "devices/system/edac/mc/mc*")
	if len(dirs) == 0 {
		return check.Found(check.NotApplicable, "no driver counts the memory's errors (EDAC)")
	}
	var before edacKept
	if json.Unmarshal(h.Kept, &before) != nil {
		before = edacKept{}
	}
	var p problems
	var metrics []check.Metric
	now := edacKept{Corrected: map[string]int64{}, Mended: before.Mended}
	if before.Record > 0 { // those so far are of a memory that was replaced
		now.Mended = map[string]int64{}
	}
	for _, dir := range dirs {
		mc := filepath.Base(dir)
		ue, ok := sysNumber(dir, "ue_count")
		ce, ok2 := sysNumber(dir, "ce_count")
		if !ok || !ok2 {
			p.unclear("the error counts of memory controller %s cannot be read", mc)
			continue
		}
		now.Corrected[mc] = ce
		if before.Record > 0 {
			now.Mended[mc] = ue
		}
		if ue > now.Mended[mc] {
			p.failed("memory of controller %s had uncorrectable errors", mc)
		}
		if was, known := before.Corrected[mc]; known && ce-was > correctableBurst {
			p.warned("memory of controller %s has many corrected errors", mc)
		}
		metrics = append(metrics, edacMetric(mc, "corrected", ce), edacMetric(mc, "uncorrected", ue))
	}
	f := p.finding("the memory has had no uncorrectable errors")
	f.Keep, _ = json.Marshal(now)
	f.Metrics = metrics
	return f
}

// edacKept is by controller: corrected errors so far, and uncorrected ones that do
// not count any more.
type edacKept struct {
	check.Forgotten
	Corrected map[string]int64 `json:"corrected,omitempty"`
	Mended    map[string]int64 `json:"mended,omitempty"`
}

// More corrected errors than this between two runs are worth a word.
const correctableBurst = 1000

func edacMetric(mc, kind string, n int64) check.Metric {
	return check.Metric{Name: "memory_errors_total", Help: "Errors of the node's memory since boot.", Counter: true,
		Labels: map[string]string{"controller": mc, "kind": kind}, Value: float64(n)}
}
