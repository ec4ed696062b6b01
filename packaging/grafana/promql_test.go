// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// promtool runs promtool on a file that is JSON, hence YAML.
func promtool(t *testing.T, verb string, file any) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("needs promtool: make deps installs it")
	}
	text, err := json.Marshal(file)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "file.yml")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	out, err := exec.Command("promtool", verb, "rules", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestQueriesAreValid: Prometheus can parse each query.
func TestQueriesAreValid(t *testing.T) {
	rules := []object{}
	for _, d := range readAll(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				expr := variableOfGrafana.ReplaceAllString(strings.ReplaceAll(target.Expr, "$__range", "1h"), "x")
				rules = append(rules, object{"record": fmt.Sprintf("panel:%d", len(rules)), "expr": expr})
			}
		}
	}
	require.Greater(t, len(rules), 100)
	promtool(t, "check", object{"groups": []object{{"name": "panels", "rules": rules}}})
}

// TestTwoExportersInPrometheus: panels show the same with two exporters as with one.
func TestTwoExportersInPrometheus(t *testing.T) {
	var input, tests []object
	for series, values := range map[string]string{
		`gojail_slurm_nodes{state="idle",`:                           "2x20",
		`gojail_slurm_node_reason{node="n1",reason="r",user="root",`: "1x20",
		`gojail_slurm_node_reason_time_seconds{node="n1",`:           "60x20",
		`gojail_slurm_jobs_submitted_total{`:                         "0+60x20",
		`gojail_slurm_node_gpus{node="n1",type="h100",`:              "4x20",
		`gojail_slurm_node_jobs{node="n1",`:                          "0x20",
	} {
		for _, instance := range []string{"a", "b"} {
			input = append(input, object{"series": series + `job="slurm",instance="` + instance + `"}`, "values": values})
		}
	}
	queries := map[string]string{}
	for _, d := range []*dashboard{&cluster, &scheduler} {
		for _, p := range d.panels {
			if len(p.queries) > 0 {
				queries[d.name+": "+p.title] = mergeExporters(p.queries[0].expr)
			}
		}
	}
	for panel, want := range map[string]object{
		"gojail-cluster: Nodes":                      {"labels": "{}", "value": 2},
		"gojail-cluster: Nodes with a reason":        {"labels": `{job="slurm",node="n1",reason="r",user="root"}`, "value": 540},
		"gojail-cluster: Nodes with GPUs and no job": {"labels": "{}", "value": 1},
		"gojail-scheduler: Jobs":                     {"labels": `{job="slurm"}`, "value": 60},
	} {
		require.Contains(t, queries, panel)
		tests = append(tests, object{"expr": queries[panel], "eval_time": "10m", "exp_samples": []object{want}})
	}
	promtool(t, "test", object{"evaluation_interval": "1m", "tests": []object{{"interval": "1m", "input_series": input, "promql_expr_test": tests}}})
}
