// SPDX-License-Identifier: Apache-2.0

package main

// node shows one node. Series of node_exporter are found by the instance that has the node's metrics.
var node = dashboard{
	name: "gojail-node", title: "gojail: node",
	variables: []variable{
		{"node", "Node", `label_values(gojail_build_info, node)`, chooseOne},
		{"instance", "", `label_values(gojail_build_info{node="$node"}, instance)`, hidden},
	},
	panels: []panel{
		stat("Jobs in jails", "", "none", `count(count by (job_id) (gojail_job_info{node="$node"}))`),
		stat("GPUs of jobs", "", "none", `count(count by (device, GPU_I_ID) (gojail_job_gpu{node="$node"}))`),
		stat("VFs of jobs", "", "none", `sum(gojail_vfs{state="in_use",node="$node"})`),
		stat("VFs in quarantine", "", "none", `sum(gojail_vfs{state="quarantined",node="$node"})`, red),
		stat("Bad checks", "Health checks that count as bad.", "none", `sum(gojail_health_check_counts{node="$node"})`,
			red),
		stat("Age of the metrics", "More than a minute: gojail-metrics.timer has stopped, or cannot write.", "s",
			`time() - max(gojail_metrics_time_seconds{node="$node"})`, limit{60, "red"}),
		table("Jobs", "", `gojail_job_info{node="$node"}`, column{"job_id", "Job"}, column{"user", "User"},
			column{"jail", "Jail"}, column{"version", "Version"}),
		table("Jails", "1: the next job gets this template. 0: the configuration has changed since.",
			`gojail_template_info{node="$node"} * on (job, node, jail) group_left () `+
				`gojail_template_current{node="$node"}`,
			column{"jail", "Jail"}, column{"version", "Version"}, column{"key", "Key"}, column{"Value", "Current"}),
		table("Health checks that warn or fail", "2 is a warning, 3 a failure.",
			`gojail_health_check_status{node="$node"} > 1 < 4`,
			column{"check", "Check"}, column{"severity", "Severity"}, column{"Value", "Verdict"}),
		table("GPUs with their jobs", "", `gojail_job_gpu{node="$node"}`, column{"gpu", "GPU"},
			column{"GPU_I_ID", "MIG instance"}, column{"job_id", "Job"}, column{"user", "User"},
			column{"UUID", "UUID"}),

		row("Processors, memory, disk (of node_exporter)"),
		graph("CPUs in use", "", "short",
			query{`sum by (mode) (rate(node_cpu_seconds_total{instance=~"$instance",mode!="idle"}[5m]))`, "{{mode}}"}),
		graph("Memory", "", "bytes", query{`node_memory_MemTotal_bytes{instance=~"$instance"} - ` +
			`node_memory_MemAvailable_bytes{instance=~"$instance"}`, "used"},
			query{`node_memory_MemTotal_bytes{instance=~"$instance"}`, "total"}),
		graph("Full file systems", "The ten fullest.", "percentunit",
			query{`topk(10, 1 - ` +
				`node_filesystem_avail_bytes{instance=~"$instance",fstype!~"tmpfs|proc|sysfs|overlay"} / ` +
				`(node_filesystem_size_bytes{instance=~"$instance",fstype!~"tmpfs|proc|sysfs|overlay"} > 0))`,
				"{{mountpoint}}"}),
		graph("CPUs in use by job", "", "short", query{`rate(gojail_job_cpu_seconds_total{node="$node"}[5m])`,
			"{{job_id}}"}),
		graph("Memory by job", "", "bytes", query{`gojail_job_memory_bytes{node="$node"}`, "{{job_id}}"}),
		graph("Scratch by job", "", "bytes", query{`gojail_job_scratch_bytes{node="$node"}`, "{{job_id}}"}),
		graph("Load", "", "short", query{`node_load1{instance=~"$instance"}`, "1 minute"},
			query{`node_load15{instance=~"$instance"}`, "15 minutes"}),
		graph("Network of the node", "Received and sent (below 0).", "Bps",
			query{`rate(node_network_receive_bytes_total{instance=~"$instance",device!="lo"}[5m])`,
				"{{device}} received"},
			query{`-rate(node_network_transmit_bytes_total{instance=~"$instance",device!="lo"}[5m])`,
				"{{device}} sent"}),
		graph("Network of jobs", "Sent, by interfaces and by RDMA.", "Bps",
			query{`rate(gojail_job_network_transmit_bytes_total{node="$node"}[5m])`, "{{job_id}} {{rail}}"},
			query{`rate(gojail_job_rdma_port_data_transmitted_bytes_total{node="$node"}[5m])`,
				"{{job_id}} {{rail}} RDMA"}),

		row("GPUs (of dcgm-exporter), with their jobs"),
		graph("GPU use", "Of GPUs that jobs have. One without use is paid for and idle.", "percent",
			query{onGPUsOfNode(`DCGM_FI_DEV_GPU_UTIL`), "GPU {{gpu}} {{GPU_I_ID}} job {{job_id}}"},
			query{onGPUsOfNode(useOfInstances), "GPU {{gpu}} {{GPU_I_ID}} job {{job_id}}"}),
		graph("Memory of GPUs", "", "mbytes", query{onGPUsOfNode(`DCGM_FI_DEV_FB_USED`),
			"GPU {{gpu}} {{GPU_I_ID}} job {{job_id}}"}),
		graph("Temperature", "", "celsius", query{onGPUsOfNode(`DCGM_FI_DEV_GPU_TEMP`),
			"GPU {{gpu}} {{GPU_I_ID}} job {{job_id}}"}),

		row("Launches"),
		graph("Steps that entered", "", "ops", query{`rate(gojail_steps_entered_total{node="$node"}[5m])`, "{{jail}}"}),
		graph("How long steps took to enter", "99 of 100.", "s", query{`histogram_quantile(0.99, sum by (jail, le) ` +
			`(rate(gojail_step_entry_duration_seconds_bucket{node="$node"}[5m])))`, "{{jail}}"}),
		graph("Failures by reason", "In ten minutes.", "short",
			query{`increase(gojail_steps_failed_total{node="$node"}[10m]) > 0`, "{{jail}} {{reason}}"}),
	},
}

// onGPUsOfNode joins a series of dcgm-exporter with the jobs of the node. Several jobs may share a GPU, and each has a
// line then.
func onGPUsOfNode(metric string) string {
	return `gojail_job_gpu{node="$node"} * on (UUID, GPU_I_ID) group_left () max by (UUID, GPU_I_ID) (` + metric + `)`
}
