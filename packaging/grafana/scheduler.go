// SPDX-License-Identifier: Apache-2.0

package main

// scheduler shows how busy slurmctld is, and with what, as gojail-exporter tells.
var scheduler = dashboard{
	name: "gojail-scheduler", title: "gojail: scheduler",
	panels: []panel{
		stat("Controller", "1: slurmctld answered in the last interval.", "none", `max(gojail_slurm_controller_up)`, limit{0, "red"}, limit{1, "green"}),
		stat("Age of the data", "Of the oldest. gojail-exporter asks once per interval, whoever scrapes it.", "s", `max(min without (instance) (gojail_exporter_data_age_seconds))`, limit{300, "orange"}),
		stat("Stale data", "Sources whose last command failed, or whose data is too old, in each exporter that is active.", "none", `sum(min without (instance) (gojail_exporter_data_stale))`, orange),
		stat("RPCs at the moment", "", "none", `max(gojail_slurm_server_threads)`),
		stat("Messages for slurmdbd", "They wait. Many: slurmdbd is away, or slow.", "none", `max(gojail_slurm_dbd_agent_queue_size)`, limit{1000, "red"}),
		stat("Messages for nodes", "They wait.", "none", `max(gojail_slurm_agent_queue_size)`, limit{1000, "orange"}),
		table("Controllers", "1: it answered the last scontrol ping.", `gojail_slurm_controller_responding`, column{"controller", "Controller"}, column{"Value", "Answers"}),
		table("gojail-exporter", "", `gojail_exporter_build_info`, column{"instance", "At"}, column{"version", "Version"}),

		row("Jobs"),
		graph("Jobs", "Per minute.", "short",
			query{`60 * rate(gojail_slurm_jobs_submitted_total[5m])`, "submitted"}, query{`60 * rate(gojail_slurm_jobs_started_total[5m])`, "started"},
			query{`60 * rate(gojail_slurm_jobs_completed_total[5m])`, "completed"}, query{`60 * rate(gojail_slurm_jobs_failed_total[5m])`, "failed"},
			query{`60 * rate(gojail_slurm_jobs_canceled_total[5m])`, "canceled"}),
		graph("Started by backfill", "Per minute.", "short", query{`60 * rate(gojail_slurm_backfill_jobs_total[5m])`, "jobs"}),
		graph("Queue", "At the last cycle.", "short", query{`gojail_slurm_scheduler_queue_length`, "main"}, query{`gojail_slurm_backfill_queue_length`, "backfill"}),

		row("Cycles"),
		graph("Main scheduler", "How long its last cycle took, and the mean.", "s", query{`gojail_slurm_scheduler_cycle_last_seconds`, "last"}, query{`gojail_slurm_scheduler_cycle_mean_seconds`, "mean"}),
		graph("Backfill", "How long its last cycle took, and the mean.", "s", query{`gojail_slurm_backfill_cycle_last_seconds`, "last"}, query{`gojail_slurm_backfill_cycle_mean_seconds`, "mean"}),
		graph("Depth of backfill", "Jobs that a cycle looked at, and tried to start.", "short", query{`gojail_slurm_backfill_depth`, "looked at"}, query{`gojail_slurm_backfill_depth_tried`, "tried"}),
		graph("Since the last cycle of backfill", "A controller that is loaded does not get to it.", "s", query{`time() - (gojail_slurm_backfill_last_cycle_time_seconds > 0)`, "backfill"}),
		graph("Why cycles of the main scheduler end", "In ten minutes.", "short", query{`increase(gojail_slurm_scheduler_exits_total[10m]) > 0`, "{{reason}}"}),
		graph("Why cycles of backfill end", "In ten minutes.", "short", query{`increase(gojail_slurm_backfill_exits_total[10m]) > 0`, "{{reason}}"}),

		row("RPCs"),
		graph("Calls", "The ten types with most.", "reqps", query{`topk(10, rate(gojail_slurm_rpc_calls_total[5m]))`, "{{rpc}}"}),
		graph("Time", "Of slurmctld, of 1: the ten types with most.", "percentunit", query{`topk(10, rate(gojail_slurm_rpc_duration_seconds_total[5m]))`, "{{rpc}}"}),
		graph("Calls by user", "The ten with most. A user in a loop of squeue is seen here.", "reqps", query{`topk(10, rate(gojail_slurm_rpc_user_calls_total[5m]))`, "{{user}}"}),
		graph("Threads", "", "short", query{`gojail_slurm_server_threads`, "RPCs"}, query{`gojail_slurm_agent_threads`, "agents"}),
		graph("Messages that wait", "", "short", query{`gojail_slurm_agent_queue_size`, "for nodes"}, query{`gojail_slurm_dbd_agent_queue_size`, "for slurmdbd"}),
		graph("Commands of gojail-exporter", "How long its commands took, and failures in ten minutes.", "s", query{`gojail_exporter_command_duration_seconds`, "{{instance}} {{source}}"},
			query{`increase(gojail_exporter_command_failures_total[10m]) > 0`, "{{instance}} {{source}} {{reason}}"}),
	},
}
