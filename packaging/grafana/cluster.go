// SPDX-License-Identifier: Apache-2.0

package main

// cluster shows the queue, what is allocated, and the nodes, as gojail-exporter tells.
var cluster = dashboard{
	name: "gojail-cluster", title: "gojail: cluster",
	variables: []variable{{"partition", "Partition", `label_values(gojail_slurm_partition_cpus, partition)`,
		chooseAny}},
	panels: []panel{
		stat("Controller", "1: slurmctld answered in the last interval.", "none", `max(gojail_slurm_controller_up)`,
			limit{0, "red"}, limit{1, "green"}),
		stat("Nodes", "", "none", `sum(gojail_slurm_nodes)`),
		stat("Drained nodes", "", "none", `sum(gojail_slurm_nodes_flagged{flag="drain"})`, orange),
		stat("Nodes down", "", "none", `sum(gojail_slurm_nodes{state="down"})`, red),
		stat("Jobs that run", "", "none", `sum(gojail_slurm_jobs{state="running"})`),
		stat("Jobs that wait", "", "none", `sum(gojail_slurm_jobs{state="pending"})`),
		table("Nodes with a reason",
			"Why they are drained or down, and who said so. A reason that ends in \"gojail\" is of the health checks.",
			`gojail_slurm_node_reason * on (job, node) group_left () (time() - `+
				`gojail_slurm_node_reason_time_seconds) or gojail_slurm_node_reason`,
			column{"node", "Node"}, column{"reason", "Reason"}, column{"user", "By"}, column{"Value", "Seconds"}),
		table("Partitions", "CPUs of their nodes that jobs have, of 1.",
			`gojail_slurm_partition_cpus_allocated{partition=~"$partition"} / `+
				`(gojail_slurm_partition_cpus{partition=~"$partition"} > 0)`,
			column{"partition", "Partition"}, column{"Value", "Allocated"}),

		row("Allocation"),
		graph("GPUs", "Of the cluster, and those that jobs have.", "short",
			query{`sum by (type) (gojail_slurm_gpus_allocated)`, "{{type}} allocated"},
			query{`sum by (type) (gojail_slurm_gpus)`, "{{type}}"}),
		graph("GPUs by partition", "Allocated, of 1.", "percentunit",
			query{`sum by (partition) (gojail_slurm_partition_gpus_allocated{partition=~"$partition"}) / (sum by ` +
				`(partition) (gojail_slurm_partition_gpus{partition=~"$partition"}) > 0)`, "{{partition}}"}),
		graph("CPUs by partition", "Allocated, of 1.", "percentunit",
			query{`gojail_slurm_partition_cpus_allocated{partition=~"$partition"} / ` +
				`(gojail_slurm_partition_cpus{partition=~"$partition"} > 0)`, "{{partition}}"}),

		row("Queue"),
		graph("Jobs by state", "", "short", query{`gojail_slurm_jobs`, "{{state}}"}),
		graph("Jobs that wait, by reason", "", "short",
			query{`sum by (reason) (gojail_slurm_partition_jobs_pending{partition=~"$partition"})`, "{{reason}}"}),
		graph("Jobs by partition", "", "short",
			query{`gojail_slurm_partition_jobs{partition=~"$partition",state=~"running|pending"}`,
				"{{partition}} {{state}}"}),

		row("Nodes"),
		graph("Nodes by state", "", "short", query{`gojail_slurm_nodes`, "{{state}}"}),
		graph("Nodes with a flag", "drain, not responding, in a reservation and others.", "short",
			query{`gojail_slurm_nodes_flagged`, "{{flag}}"}),
		graph("Nodes of a partition by state", "", "short",
			query{`gojail_slurm_partition_nodes{partition=~"$partition"}`, "{{partition}} {{state}}"}),
		graph("Versions of slurmd", "", "short", query{`gojail_slurm_nodes_slurmd`, "{{version}}"}),
		graph("Drained by gojail", "By the health checks of the node.", "short",
			query{`sum(gojail_health_drained)`, "nodes"}),
		graph("Nodes with GPUs and no job", "Paid for, and idle.", "short",
			query{`count(sum by (job, node) (gojail_slurm_node_gpus) > 0 and on (job, node) gojail_slurm_node_jobs ` +
				`== 0)`, "nodes"}),
	},
}
