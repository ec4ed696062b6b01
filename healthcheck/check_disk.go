// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// disk looks at RAID arrays and NVMe controllers as sysfs shows them, without I/O to them.
func disk(_ context.Context, h *Host, _ *Settings) Finding {
	var p problems
	seen := 0
	for _, dir := range matches(h.Roots.Sys, "block/md*/md") {
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
		return Found(NotApplicable, "the node has neither RAID arrays nor NVMe")
	}
	return p.finding("RAID arrays and NVMe controllers are well")
}

// edac is the memory controllers' count of errors since boot.
func edac(_ context.Context, h *Host, _ *Settings) Finding {
	dirs := matches(h.Roots.Sys, "devices/system/edac/mc/mc*")
	if len(dirs) == 0 {
		return Found(NotApplicable, "no driver counts the memory's errors (EDAC)")
	}
	var before map[string]int64
	if json.Unmarshal(h.Kept, &before) != nil {
		before = nil
	}
	var p problems
	var metrics []Metric
	now := map[string]int64{}
	for _, dir := range dirs {
		mc := filepath.Base(dir)
		ue, ok := sysNumber(dir, "ue_count")
		ce, ok2 := sysNumber(dir, "ce_count")
		if !ok || !ok2 {
			p.unclear("the error counts of memory controller %s cannot be read", mc)
			continue
		}
		now[mc] = ce
		if ue > 0 {
			p.failed("memory of controller %s had uncorrectable errors", mc)
		}
		if was, known := before[mc]; known && ce-was > correctableBurst {
			p.warned("memory of controller %s has many corrected errors", mc)
		}
		metrics = append(metrics, edacMetric(mc, "corrected", ce), edacMetric(mc, "uncorrected", ue))
	}
	f := p.finding("the memory has had no uncorrectable errors")
	f.Keep, _ = json.Marshal(now)
	f.Metrics = metrics
	return f
}

// More corrected errors than this between two runs are worth a word.
const correctableBurst = 1000

func edacMetric(mc, kind string, n int64) Metric {
	return Metric{Name: "memory_errors_total", Help: "Errors of the node's memory since boot.", Counter: true,
		Labels: map[string]string{"controller": mc, "kind": kind}, Value: float64(n)}
}

func matches(root, pattern string) []string {
	all, _ := filepath.Glob(filepath.Join(root, pattern))
	return all
}

func sysText(dir, name string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSpace(string(text)), err == nil
}

func sysNumber(dir, name string) (int64, bool) {
	text, _ := sysText(dir, name)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}
