// SPDX-License-Identifier: Apache-2.0

package main

// health shows the health checks.
var health = dashboard{
	name: "gojail-health", title: "gojail: health of nodes",
	variables: []variable{{"node", "Node", `label_values(gojail_health_last_run_timestamp_seconds, node)`, chooseAny}},
	panels: []panel{
		row("Nodes"),
		stat("Nodes that report", "Nodes whose health checks have written metrics.", "none", `count(gojail_health_last_run_timestamp_seconds{node=~"$node"})`),
		stat("Drained", "Nodes that their own health checks have drained.", "none", `sum(gojail_health_drained{node=~"$node"})`, orange),
		stat("Nodes with a bad check", "Nodes with a check that counts as bad and would drain them.", "none",
			`count(max by (node) (gojail_health_check_counts{node=~"$node",severity="drain"}) == 1)`, red),
		stat("Silent for 10 minutes", "Nodes whose last run is long ago: slurmd is down, or the health check hangs or is not configured.", "none",
			`count(time() - gojail_health_last_run_timestamp_seconds{node=~"$node"} > 600)`, red),
		stat("Runs with errors", "Nodes whose last run could not be completed: the controller did not answer, a file was damaged.", "none",
			`count(gojail_health_run_errors{node=~"$node"} > 0)`, orange),
		table("Checks that count as bad", "After enough runs in a row. gojail-healthcheck explain CHECK says what to do.",
			`gojail_health_check_counts{node=~"$node"} == 1`, column{"node", "Node"}, column{"check", "Check"}, column{"severity", "Severity"}),
		table("What the last runs found", "2 is a warning, 3 a failure. A failure that does not count yet is new.",
			`gojail_health_check_status{node=~"$node"} > 1 < 4`, column{"node", "Node"}, column{"check", "Check"}, column{"severity", "Severity"}, column{"Value", "Verdict"}),
		graph("Bad checks", "How many nodes each check is bad on.", "short", query{`sum by (check) (gojail_health_check_counts{node=~"$node"}) > 0`, "{{check}}"}),
		graph("Duration of a run", "slurmd waits for so long.", "s", query{`gojail_health_run_duration_seconds{node=~"$node"}`, "{{node}}"}),
		graph("Slowest checks", "The ten slowest of all nodes.", "s", query{`topk(10, gojail_health_check_duration_seconds{node=~"$node"})`, "{{node}} {{check}}"}),

		row("GPUs"),
		graph("GPUs in the driver", "", "short", query{`gojail_health_gpus{node=~"$node"}`, "{{node}}"}),
		graph("Temperature", "", "celsius", query{`gojail_health_gpu_temperature_celsius{node=~"$node"}`, gpuInHealth}),
		graph("Power", "", "watt", query{`gojail_health_gpu_power_milliwatts{node=~"$node"} / 1000`, gpuInHealth}),
		graph("Uncorrectable errors", "In SRAM and in memory, since the driver was loaded.", "short",
			query{`gojail_health_gpu_sram_uncorrectable_errors_total{node=~"$node"} + on (job, node, gpu) gojail_health_gpu_memory_uncorrectable_errors_total{node=~"$node"} > 0`, gpuInHealth}),
		graph("Corrected errors in an hour", "", "short", query{`clamp_min(delta(gojail_health_gpu_memory_corrected_errors_total{node=~"$node"}[1h]), 0) > 0`, gpuInHealth}),
		graph("Remapped rows", "Remapped after uncorrectable errors, in the GPU's life.", "short", query{`gojail_health_gpu_rows_remapped{node=~"$node"} > 0`, gpuInHealth}),
		graph("Active NVLinks", "", "short", query{`gojail_health_gpu_nvlinks_active{node=~"$node"}`, gpuInHealth}),
		graph("NVLink errors in an hour", "CRC errors, replays and recoveries.", "short", query{`clamp_min(delta(gojail_health_gpu_nvlink_errors_total{node=~"$node"}[1h]), 0) > 0`, gpuInHealth}),
		graph("PCIe replays in an hour", "", "short", query{`clamp_min(delta(gojail_health_gpu_pcie_replays_total{node=~"$node"}[1h]), 0) > 0`, gpuInHealth}),

		row("Active checks with NCCL"),
		stat("Last round", "0: all nodes pass, 1: a warning, 2: a bad node, 3: an unknown result.", "none", `max(gojail_health_nccl_round_status)`, limit{1, "orange"}, limit{2, "red"}),
		stat("Since the last round", "", "s", `time() - max(gojail_health_nccl_round_timestamp_seconds)`),
		graph("Busbw of nodes alone", "Of what a healthy node reaches, as health.toml has it.", "percentunit",
			query{`gojail_health_nccl_busbw_bytes_per_second{partner=""} / gojail_health_nccl_busbw_expected_bytes_per_second`, "{{node}}"}).wide(12),
		graph("Busbw of pairs", "Likewise. A node that is slow with several partners has a bad link.", "percentunit",
			query{`gojail_health_nccl_busbw_bytes_per_second{partner!=""} / gojail_health_nccl_busbw_expected_bytes_per_second`, "{{node}} {{partner}}"}).wide(12),
		table("Last results", "", `gojail_health_nccl_busbw_bytes_per_second`,
			column{"node", "Node"}, column{"partner", "Partner"}, column{"Value", "Bytes per second"}),
		table("Tests that failed", "", `gojail_health_nccl_test_passed == 0`, column{"node", "Node"}, column{"partner", "Partner"}),

		row("Network and node"),
		graph("RDMA links that went down, in an hour", "", "short", query{`clamp_min(delta(gojail_health_rdma_link_downed_total{node=~"$node"}[1h]), 0) > 0`, "{{node}} {{port}}"}),
		graph("RDMA port errors in an hour", "", "short", query{`clamp_min(delta(gojail_health_rdma_port_errors_total{node=~"$node"}[1h]), 0) > 0`, "{{node}} {{port}} {{counter}}"}),
		graph("Clock", "What is still to be slewed.", "s", query{`gojail_health_clock_offset_seconds{node=~"$node"}`, "{{node}}"}),
		graph("Errors of the node's memory", "", "short", query{`gojail_health_memory_errors_total{node=~"$node"} > 0`, "{{node}} {{controller}} {{kind}}"}),
		graph("Processes in D state", "", "short", query{`gojail_health_processes_uninterruptible{node=~"$node"} > 0`, "{{node}}"}),
		graph("Zombies", "", "short", query{`gojail_health_processes_zombie{node=~"$node"} > 0`, "{{node}}"}),
	},
}

const gpuInHealth = "{{node}} GPU {{gpu}}"
