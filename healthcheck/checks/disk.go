// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
)

// disk checks RAID arrays and NVMe controllers as reported by sysfs, without I/O to them.
func disk(_ context.Context, h *check.Host, _ *check.Settings) check.Finding {
	var p problems
	seen := 0
	for _, dir := range findMatches(h.Roots.Sys, "block/md*/md") {
		if isContainer(dir) {
			continue
		}
		name := filepath.Base(filepath.Dir(dir))
		state, ok := readSysText(dir, "array_state")
		degraded, ok2 := readSysNumber(dir, "degraded") // only arrays with redundancy have this file
		seen++
		switch {
		case !ok:
			p.addUnknown("cannot read the state of %s", name)
		case state == "inactive", state == "broken", state == "suspended":
			p.addFailure("RAID array %s is %.12s", name, state)
		case ok2 && degraded > 0:
			p.addWarning("RAID array %s is degraded", name)
		}
	}
	for _, dir := range findMatches(h.Roots.Sys, "class/nvme/nvme*") {
		state, ok := readSysText(dir, "state")
		name := filepath.Base(dir)
		seen++
		switch state {
		case "live":
		case "new", "connecting", "resetting":
			p.addWarning("%s is %s", name, state)
		case "dead", "deleting", "deleting (no IO)":
			p.addFailure("%s is %s", name, state)
		default:
			if !ok {
				p.addUnknown("cannot read the state of %s", name)
			} else {
				p.addUnknown("cannot parse the state of %s", name)
			}
		}
	}
	if seen == 0 {
		return check.NewFinding(check.NotApplicable, "the node has no RAID arrays and no NVMe controllers")
	}
	return p.buildFinding("RAID arrays and NVMe controllers are healthy")
}

// isContainer reports whether an md device is a container instead of an array: it holds the
// metadata of arrays and is always inactive (mdadm(8)). Its metadata version is like
// "external:imsm", that of its arrays like "external:/md127/0".
func isContainer(dir string) bool {
	version, _ := readSysText(dir, "metadata_version")
	return strings.HasPrefix(version, "external:") && !strings.HasPrefix(version, "external:/") &&
		!strings.HasPrefix(version, "external:-")
}

// edac checks the error counters of the memory controllers since boot.
func edac(_ context.Context, h *check.Host, _ *check.Settings) check.Finding {
	dirs := findMatches(h.Roots.Sys, "devices/system/edac/mc/mc*")
	if len(dirs) == 0 {
		return check.NewFinding(check.NotApplicable, "no EDAC driver counts memory errors")
	}
	var before edacState
	if json.Unmarshal(h.State, &before) != nil {
		before = edacState{}
	}
	var p problems
	var metrics []check.Metric
	now := edacState{Corrected: map[string]int64{}, Ignored: before.Ignored}
	if before.Record > 0 { // earlier errors belong to a memory module that was replaced
		now.Ignored = map[string]int64{}
	}
	for _, dir := range dirs {
		mc := filepath.Base(dir)
		ue, ok := readSysNumber(dir, "ue_count")
		ce, ok2 := readSysNumber(dir, "ce_count")
		if !ok || !ok2 {
			p.addUnknown("cannot read the error counters of memory controller %s", mc)
			continue
		}
		now.Corrected[mc] = ce
		if before.Record > 0 {
			now.Ignored[mc] = ue
		}
		if ue > now.Ignored[mc] {
			p.addFailure("memory of controller %s had uncorrectable errors", mc)
		}
		if was, known := before.Corrected[mc]; known && ce-was > correctableBurst {
			p.addWarning("memory of controller %s has many corrected errors", mc)
		}
		metrics = append(metrics, newEDACMetric(mc, "corrected", ce), newEDACMetric(mc, "uncorrected", ue))
	}
	f := p.buildFinding("memory has had no uncorrectable errors")
	f.State, _ = json.Marshal(now)
	f.Metrics = metrics
	return f
}

// edacState is the state by controller: the corrected errors so far, and the uncorrected errors
// to ignore.
type edacState struct {
	check.Forgotten
	Corrected map[string]int64 `json:"corrected,omitempty"`
	Ignored   map[string]int64 `json:"mended,omitempty"`
}

// correctableBurst is the number of corrected errors between two runs above which the check
// warns.
const correctableBurst = 1000

// newEDACMetric returns the metric for one counter of a memory controller.
func newEDACMetric(mc, kind string, n int64) check.Metric {
	return check.Metric{Name: "memory_errors_total", Help: "Errors of the node's memory since boot.", Counter: true,
		Labels: map[string]string{"controller": mc, "kind": kind}, Value: float64(n)}
}
