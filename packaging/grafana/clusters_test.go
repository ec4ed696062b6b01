// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTwoClustersInPrometheus: two clusters whose nodes have the same names, each with a job of Prometheus of its own.
func TestTwoClustersInPrometheus(t *testing.T) {
	var input, tests []object
	for series, values := range map[string]string{
		`gojail_slurm_node_reason{node="n1",reason="r",user="root",`:             "1x20",
		`gojail_slurm_node_reason_time_seconds{node="n1",`:                       "60x20",
		`gojail_slurm_node_gpus{node="n1",type="h100",`:                          "4x20",
		`gojail_slurm_node_jobs{node="n1",`:                                      "0x20",
		`gojail_template_info{node="n1",jail="a",key="k",`:                       "1x20",
		`gojail_template_current{node="n1",jail="a",`:                            "1x20",
		`gojail_health_gpu_sram_uncorrectable_errors_total{node="n1",gpu="0",`:   "1x20",
		`gojail_health_gpu_memory_uncorrectable_errors_total{node="n1",gpu="0",`: "1x20",
	} {
		for _, job := range []string{"slurm-a", "slurm-b"} {
			input = append(input, object{"series": series + `job="` + job + `",instance="i"}`, "values": values})
		}
	}
	queries := map[string]string{}
	for _, d := range []*dashboard{&cluster, &node, &health} {
		for _, p := range d.panels {
			if len(p.queries) > 0 {
				queries[d.name+": "+p.title] = strings.ReplaceAll(mergeExporters(p.queries[0].expr), "$node", "n1")
			}
		}
	}
	for panel, want := range map[string][]object{
		"gojail-cluster: Nodes with GPUs and no job": {{"labels": "{}", "value": 2}},
		"gojail-cluster: Nodes with a reason": {
			{"labels": `{job="slurm-a",node="n1",reason="r",user="root"}`, "value": 540}, {"labels": `{job="slurm-b",node="n1",reason="r",user="root"}`, "value": 540}},
		"gojail-node: Jails": {
			{"labels": `{job="slurm-a",instance="i",node="n1",jail="a",key="k"}`, "value": 1}, {"labels": `{job="slurm-b",instance="i",node="n1",jail="a",key="k"}`, "value": 1}},
		"gojail-health: Uncorrectable errors": {{"labels": `{job="slurm-a",node="n1",gpu="0"}`, "value": 2}, {"labels": `{job="slurm-b",node="n1",gpu="0"}`, "value": 2}},
	} {
		require.Contains(t, queries, panel)
		tests = append(tests, object{"expr": queries[panel], "eval_time": "10m", "exp_samples": want})
	}
	promtool(t, "test", object{"evaluation_interval": "1m", "tests": []object{{"interval": "1m", "input_series": input, "promql_expr_test": tests}}})
}
