// SPDX-License-Identifier: Apache-2.0

package main

// entryTime returns the query for a quantile of how long steps took to enter.
func entryTime(quantile string) string {
	return `histogram_quantile(` + quantile +
		`, sum by (jail, le) (rate(gojail_step_entry_duration_seconds_bucket{jail=~"$jail",node=~"$node"}[5m])))`
}

// jails shows what versions nodes have, and how steps enter.
var jails = dashboard{
	name: "gojail-jails", title: "gojail: jails",
	variables: []variable{
		{"jail", "Jail", `label_values(gojail_template_info, jail)`, chooseAny},
		{"node", "Node", `label_values(gojail_build_info, node)`, chooseAny},
	},
	panels: []panel{
		stat("Jobs in jails", "", "none", `count(count by (job_id) (gojail_job_info{jail=~"$jail",node=~"$node"}))`),
		stat("Steps that failed", "In the last hour. The reasons are below.", "none",
			`ceil(sum(increase(gojail_steps_failed_total{jail=~"$jail|",node=~"$node"}[1h])))`, orange),
		stat("Jails with several versions", "Jails that nodes have assembled from different versions. After a switch "+
			"that is so until the last job of the old one has ended.", "none",
			`count(count by (jail) (count by (jail, version) (gojail_template_info{jail=~"$jail",node=~"$node"})) > 1)`,
			orange),
		stat("Templates out of date", "The configuration has changed since: the next job has the template made again.",
			"none", `count(gojail_template_current{jail=~"$jail",node=~"$node"} == 0)`, orange),
		stat("Damaged sandboxes", "", "none", `sum(gojail_sandboxes{state="damaged",jail=~"$jail",node=~"$node"})`,
			red),
		stat("Ends that failed", "Jobs whose end failed and is tried again: gojail sweep says why.", "none",
			`sum(gojail_job_ends_failed{node=~"$node"})`, red),

		row("Versions"),
		table("Nodes per version", "How many nodes have assembled a jail from each version.",
			`count by (jail, version) (gojail_template_info{jail=~"$jail",node=~"$node"})`,
			column{"jail", "Jail"}, column{"version", "Version"}, column{"Value", "Nodes"}),
		table("Versions per node", "", `gojail_template_info{jail=~"$jail",node=~"$node"}`, column{"node", "Node"},
			column{"jail", "Jail"}, column{"version", "Version"}, column{"key", "Key"}),
		graph("Nodes by version", "", "short",
			query{`count by (jail, version) (gojail_template_info{jail=~"$jail",node=~"$node"})`,
				"{{jail}} {{version}}"}),
		graph("Jobs by version", "", "short", query{`count by (jail, version) (count by (job_id, jail, version) ` +
			`(gojail_job_info{jail=~"$jail",node=~"$node"}))`, "{{jail}} {{version}}"}),
		graph("Age of the oldest template", "", "s",
			query{`time() - min by (jail) (gojail_template_start_time_seconds{jail=~"$jail",node=~"$node"})`,
				"{{jail}}"}),

		row("Launches"),
		graph("Steps that entered", "", "ops",
			query{`sum by (jail) (rate(gojail_steps_entered_total{jail=~"$jail",node=~"$node"}[5m]))`, "{{jail}}"}),
		graph("How long steps took to enter", "Medians and 99 of 100: what the plugin adds to the start of a step.",
			"s", query{entryTime("0.5"), "{{jail}} median"}, query{entryTime("0.99"), "{{jail}} 99 %"}),
		graph("Slowest nodes", "The ten with the highest mean of the last five minutes.", "s",
			query{`topk(10, sum by (node) ` +
				`(rate(gojail_step_entry_duration_seconds_sum{jail=~"$jail",node=~"$node"}[5m])) / (sum by (node) ` +
				`(rate(gojail_step_entry_duration_seconds_count{jail=~"$jail",node=~"$node"}[5m])) > 0))`, "{{node}}"}),
		graph("Failures by reason",
			"In ten minutes. The page on metrics explains the reasons; the journal of the node has the error.", "short",
			query{`sum by (jail, reason) (increase(gojail_steps_failed_total{jail=~"$jail|",node=~"$node"}[10m])) > 0`,
				"{{jail}} {{reason}}"}),
		graph("Failures by node", "The ten with most in ten minutes.", "short",
			query{`topk(10, sum by (node) ` +
				`(increase(gojail_steps_failed_total{jail=~"$jail|",node=~"$node"}[10m])) > 0)`, "{{node}}"}),
		graph("Sandboxes", "A holder that has ended under a job is gone.", "short",
			query{`sum by (jail, state) (gojail_sandboxes{jail=~"$jail",node=~"$node"})`, "{{jail}} {{state}}"}),

		row("gojail itself"),
		table("Versions of gojail", "", `count by (version) (gojail_build_info{node=~"$node"})`,
			column{"version", "Version"}, column{"Value", "Nodes"}),
		table("Metrics that are incomplete", "gojail metrics on the node says what cannot be read.",
			`gojail_metrics_errors{node=~"$node"} > 0`, column{"node", "Node"}, column{"Value", "Errors"}),
		graph("Age of the metrics",
			"The ten oldest. More than a minute: gojail-metrics.timer has stopped, or cannot write.", "s",
			query{`topk(10, time() - gojail_metrics_time_seconds{node=~"$node"})`, "{{node}}"}),
	},
}
