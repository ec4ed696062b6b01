// SPDX-License-Identifier: Apache-2.0

package main

// jobGPUs joins a series of dcgm-exporter with the job that has the GPU, or the GPU instance of MIG. A job has each
// once.
const jobGPUs = ` * on (UUID, GPU_I_ID) group_left (node) gojail_job_gpu{job_id="$job_id"}`

// useOfInstances is the use of instances of MIG, in percent. The driver does not tell their utilization (nvml.h,
// nvmlDeviceGetUtilizationRates), as DCGM_FI_DEV_GPU_UTIL has it of whole GPUs.
const useOfInstances = `100 * DCGM_FI_PROF_GR_ENGINE_ACTIVE{GPU_I_ID!=""}`

// onItsNodes leaves series of the nodes of the job, while it is there.
const onItsNodes = ` and on (node) gojail_job_info{job_id="$job_id"}`

// job shows one job: what it has, what it uses, and what went wrong on its nodes.
var job = dashboard{
	name: "gojail-job", title: "gojail: job",
	variables: []variable{{"job_id", "Job", `label_values(gojail_job_info, job_id)`, chooseOne}},
	panels: []panel{
		stat("Nodes", "Nodes on which the job has a jail now.", "none",
			`count(count by (node) (gojail_job_info{job_id="$job_id"}))`),
		stat("GPUs", "GPUs and MIG instances that its steps got so far.", "none",
			`count(gojail_job_gpu{job_id="$job_id"})`),
		stat("VFs", "", "none", `count(gojail_job_vf{job_id="$job_id"})`),
		stat("Running for", "Since its first sandbox was made.", "s",
			`time() - min(gojail_job_start_time_seconds{job_id="$job_id"})`),
		stat("Memory in use", "Of the job's processes and files in memory, on all of its nodes.", "bytes",
			`sum(gojail_job_memory_bytes{job_id="$job_id"})`),
		stat("CPUs busy", "", "short", `sum(rate(gojail_job_cpu_seconds_total{job_id="$job_id"}[5m]))`),
		table("Nodes and jails", "The version is empty for a jail that is not of a store.",
			`gojail_job_info{job_id="$job_id"}`,
			column{"node", "Node"}, column{"user", "User"}, column{"jail", "Jail"}, column{"version", "Version"}),
		table("Checks that failed while it ran", "On its nodes, in the time shown, while the job was there. "+
			"gojail-healthcheck explain CHECK says what to do.",
			`max by (node, check, severity) (max_over_time((gojail_health_check_counts == 1`+onItsNodes+
				`)[$__range:30s]))`,
			column{"node", "Node"}, column{"check", "Check"}, column{"severity", "Severity"}),

		row("GPUs (of dcgm-exporter)"),
		graph("GPU use", "Some kernel ran for so much of the time.", "percent",
			query{`DCGM_FI_DEV_GPU_UTIL` + jobGPUs, gpuOfNode}, query{useOfInstances + jobGPUs, gpuOfNode}),
		graph("Memory of GPUs", "", "mbytes", query{`DCGM_FI_DEV_FB_USED` + jobGPUs, gpuOfNode}),
		graph("Power", "", "watt", query{`DCGM_FI_DEV_POWER_USAGE` + jobGPUs, gpuOfNode}),
		graph("Temperature", "", "celsius", query{`DCGM_FI_DEV_GPU_TEMP` + jobGPUs, gpuOfNode}),
		graph("Tensor cores", "Fraction of cycles in which they were active.", "percentunit",
			query{`DCGM_FI_PROF_PIPE_TENSOR_ACTIVE` + jobGPUs, gpuOfNode}),
		graph("Last XID error", "0: none. NVIDIA's list of XID errors has the numbers.", "short",
			query{`DCGM_FI_DEV_XID_ERRORS` + jobGPUs, gpuOfNode}),

		row("Processors, memory, disk"),
		graph("CPUs in use", "", "short", query{`rate(gojail_job_cpu_seconds_total{job_id="$job_id"}[5m])`,
			"{{node}}"}),
		graph("Memory", "Of its processes and of files in memory: what Slurm limits. At most so far: dashed in the "+
			"legend as peak.", "bytes",
			query{`gojail_job_memory_bytes{job_id="$job_id"}`, "{{node}}"},
			query{`gojail_job_memory_peak_bytes{job_id="$job_id"}`, "{{node}} peak"}),
		graph("Scratch", "What its files take of the node's disk, where the scratch directory has project quotas.",
			"bytes",
			query{`gojail_job_scratch_bytes{job_id="$job_id"}`, "{{node}}"},
			query{`gojail_job_scratch_limit_bytes{job_id="$job_id"}`, "{{node}} limit"}),

		row("Network"),
		table("VFs of the job", "", `gojail_job_vf{job_id="$job_id"}`, column{"node", "Node"}, column{"rail", "Rail"},
			column{"netdev", "In the job"}, column{"rdma", "RDMA device"},
			column{"pci", "PCI address"}, column{"pf", "Card"}, column{"vf", "VF"}),
		graph("RDMA per rail", "Received and sent (below 0).", "Bps",
			query{`sum by (rail) (rate(gojail_job_rdma_port_data_received_bytes_total{job_id="$job_id"}[5m]))`,
				"{{rail}} received"},
			query{`-sum by (rail) (rate(gojail_job_rdma_port_data_transmitted_bytes_total{job_id="$job_id"}[5m]))`,
				"{{rail}} sent"}).wide(12),
		graph("Interfaces per rail", "Received and sent (below 0); RDMA is not in it.", "Bps",
			query{`sum by (rail) (rate(gojail_job_network_receive_bytes_total{job_id="$job_id"}[5m]))`,
				"{{rail}} received"},
			query{`-sum by (rail) (rate(gojail_job_network_transmit_bytes_total{job_id="$job_id"}[5m]))`,
				"{{rail}} sent"}),
		graph("Drops and errors", "", "pps", query{dropsOf(`job_id="$job_id"`, "node, rail"), "{{node}} {{rail}}"}),
		graph("Waiting to send", "Ticks per second in which a port had data and sent none: congestion.", "short",
			query{`rate(gojail_job_rdma_port_transmit_wait_total{job_id="$job_id"}[5m])`, "{{node}} {{rail}}"}),
	},
}

const gpuOfNode = "{{node}} GPU {{gpu}} {{GPU_I_ID}}"

// dropsOf returns the query for packets that were dropped or wrong.
func dropsOf(of, by string) string {
	text := ""
	for i, name := range []string{"receive_drop", "transmit_drop", "receive_errs", "transmit_errs"} {
		if i > 0 {
			text += " + "
		}
		text += "sum by (" + by + ") (rate(gojail_job_network_" + name + "_total{" + of + "}[5m]))"
	}
	return text
}
