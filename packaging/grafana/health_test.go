// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/checks"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/drain"
	"github.com/gojail/gojail/healthcheck/nvml/fakenvml"
	"github.com/gojail/gojail/healthcheck/report"
	"github.com/gojail/gojail/healthcheck/run"
	"github.com/gojail/gojail/internal/nstest"
)

var metric = regexp.MustCompile(`gojail_health_[a-z0-9_]+`)

// Each metric that the dashboard names is one that the health check writes, and
// nearly all that it writes are on the dashboard.
func TestMetricsOfHealthExist(t *testing.T) {
	nstest.NeedRoot(t)
	rendered, err := health.render()
	require.NoError(t, err)
	text := string(rendered)
	written := exposition(t)
	for _, name := range metric.FindAllString(text, -1) {
		if strings.HasPrefix(name, "gojail_health_nccl_") {
			continue // of another program; tests/prometheus asks for them
		}
		assert.Contains(t, written, name)
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if !strings.Contains(text, name) {
			missing = append(missing, strings.TrimPrefix(name, "gojail_health_"))
		}
	}
	t.Log("written, but on no panel:", missing)
	assert.LessOrEqual(t, len(missing), len(written)/4)
}

// exposition are the names in the file of a run of all checks on a made-up node.
func exposition(t *testing.T) map[string]bool {
	h := makeHost(t)
	r := report.Report{Node: "n1", Began: time.Now(), History: &drain.History{}}
	for _, check := range checks.All() {
		if check.Name == "munge" || check.Name == "jail" || check.Name == "nvidia-smi" { // they have no numbers
			continue
		}
		r.Results = append(r.Results, run.Result{Check: check, Finding: check.Run(context.Background(), h)})
	}
	r.History.AddResults(r.Results)
	path := filepath.Join(t.TempDir(), "n1.prom")
	require.NoError(t, r.WriteMetrics(path, nil))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			names[metric.FindString(line)] = true
		}
	}
	require.Greater(t, len(names), 10)
	return names
}

// makeHost returns a node that has GPUs, an RDMA port and a memory controller.
func makeHost(t *testing.T) *check.Host {
	dir := t.TempDir()
	h := &check.Host{Node: "n1", Settings: config.DefaultSettings(), Now: time.Now,
		Command: func(context.Context, string, ...string) ([]byte, error) { return nil, os.ErrNotExist },
		Roots: check.Roots{Sys: dir + "/sys", Proc: dir + "/proc", Dev: dir + "/dev", Etc: dir + "/etc",
			Run: dir + "/run", Kmsg: dir + "/kmsg"}}
	files := map[string]string{
		"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Wed Jan 22 00:00:00 UTC 2025\n",
		"proc/uptime":                "4000.12 9.0\n",
		"proc/1/stat":                "1 (init) S 0 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 7 1 1 1\n",
		"proc/1/status":              "Name:\tinit\nState:\tS (sleeping)\nUid:\t0\t0\t0\t0\n",
		"proc/1/comm":                "init\n",
		"sys/devices/system/edac/mc/mc0/ue_count": "0\n",
		"sys/devices/system/edac/mc/mc0/ce_count": "3\n",
	}
	for name, text := range map[string]string{"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)", "link_layer": "InfiniBand",
		"counters/link_downed": "0", "counters/symbol_error": "0", "counters/port_rcv_errors": "1", "counters/link_error_recovery": "0"} {
		files["sys/class/infiniband/mlx5_0/ports/1/"+name] = text + "\n"
	}
	for i := range 8 {
		pci := fmt.Sprintf("sys/bus/pci/devices/0000:%02x:00.0/", 0x10+i)
		files[pci+"vendor"], files[pci+"class"] = "0x10de\n", "0x030200\n"
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	h.Settings.GPU.Library = fakenvml.New(t).Path
	return h
}
