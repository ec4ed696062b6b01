// SPDX-License-Identifier: Apache-2.0

package main

// perRail returns the query for a rate by rail.
func perRail(metric string) string {
	return `sum by (rail) (rate(` + metric + `{rail=~"$rail",node=~"$node"}[5m]))`
}

// rails shows VFs and what goes through them.
var rails = dashboard{
	name: "gojail-rails", title: "gojail: rails and VFs",
	variables: []variable{
		{"rail", "Rail", `label_values(gojail_vfs, rail)`, chooseAny},
		{"node", "Node", `label_values(gojail_build_info, node)`, chooseAny},
	},
	panels: []panel{
		stat("VFs of jobs", "", "none", `sum(gojail_vfs{state="in_use",rail=~"$rail",node=~"$node"})`),
		stat("VFs in quarantine", "No job gets them: gojail vf ls on the node says why, gojail sweep tries again, "+
			"gojail vf lift PCI ends the quarantine after a repair.", "none",
			`count(gojail_vf_quarantined{rail=~"$rail",node=~"$node"})`, red),
		stat("Jobs with VFs", "", "none", `count(count by (job_id) (gojail_job_vf{rail=~"$rail",node=~"$node"}))`),
		stat("Packets dropped", "Packets in the last hour.", "short",
			`ceil(sum(increase(gojail_job_network_receive_drop_total{rail=~"$rail",node=~"$node"}[1h])) + `+
				`sum(increase(gojail_job_network_transmit_drop_total{rail=~"$rail",node=~"$node"}[1h])))`, orange),
		table("Each VF in quarantine", "", `gojail_vf_quarantined{rail=~"$rail",node=~"$node"}`, column{"node", "Node"},
			column{"rail", "Rail"}, column{"pci", "PCI address"}),
		table("Each VF of a job", "", `gojail_job_vf{rail=~"$rail",node=~"$node"}`, column{"node", "Node"},
			column{"rail", "Rail"}, column{"job_id", "Job"}, column{"user", "User"},
			column{"pci", "PCI address"}, column{"rdma", "RDMA device"}),

		row("Traffic"),
		graph("RDMA per rail", "Received and sent (below 0). Rails of a job that differ much are a slow one.", "Bps",
			query{perRail("gojail_job_rdma_port_data_received_bytes_total"), "{{rail}} received"},
			query{"-" + perRail("gojail_job_rdma_port_data_transmitted_bytes_total"), "{{rail}} sent"}),
		graph("RDMA packets", "Received and sent (below 0).", "pps",
			query{perRail("gojail_job_rdma_port_packets_received_total"), "{{rail}} received"},
			query{"-" + perRail("gojail_job_rdma_port_packets_transmitted_total"), "{{rail}} sent"}),
		graph("Waiting to send", "Ticks per second in which a port had data and sent none: congestion.", "short",
			query{perRail("gojail_job_rdma_port_transmit_wait_total"), "{{rail}}"}),
		graph("Interfaces per rail", "Received and sent (below 0); RDMA is not in it.", "Bps",
			query{perRail("gojail_job_network_receive_bytes_total"), "{{rail}} received"},
			query{"-" + perRail("gojail_job_network_transmit_bytes_total"), "{{rail}} sent"}),
		graph("Packets", "Received and sent (below 0).", "pps",
			query{perRail("gojail_job_network_receive_packets_total"), "{{rail}} received"},
			query{"-" + perRail("gojail_job_network_transmit_packets_total"), "{{rail}} sent"}),
		graph("Drops and errors", "Those that have any.", "pps",
			query{dropsOf(`rail=~"$rail",node=~"$node"`, "node, rail") + " > 0", "{{node}} {{rail}}"}),

		row("Who"),
		graph("Jobs that send most by RDMA", "", "Bps", query{`topk(10, sum by (job_id) ` +
			`(rate(gojail_job_rdma_port_data_transmitted_bytes_total{rail=~"$rail",node=~"$node"}[5m])))`,
			"{{job_id}}"}),
		graph("Jobs that send most by interfaces", "", "Bps", query{`topk(10, sum by (job_id) ` +
			`(rate(gojail_job_network_transmit_bytes_total{rail=~"$rail",node=~"$node"}[5m])))`, "{{job_id}}"}),
		graph("VFs by state", "", "short", query{`sum by (rail, state) (gojail_vfs{rail=~"$rail",node=~"$node"})`,
			"{{rail}} {{state}}"}),
	},
}
