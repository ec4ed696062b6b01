// SPDX-License-Identifier: Apache-2.0

// Package metrics makes the metrics of a node, for the textfile collector of node_exporter. Data flows one way:
//
//	read.go    the state directory → Facts. It asks neither Slurm, nor the storage of a jail, nor a driver
//	gpus.go    the GPUs of a job, by their device nodes
//	cgroups.go the resources that a job uses, from its cgroups
//	facts.go   Facts: everything that is known of the node. The command adds the facts of netsetup
//	names.go   the metrics and their labels, and vfs.go; docs/metrics.md has the same list
//	render.go  Facts → text. Pure
//	mapping.go Facts → the files of dcgm-exporter
//	file.go    text → one file, replaced as a whole
//
// The library of the launch path (spank/bridge) must not import it: the packages of Prometheus take memory, and time to
// load.
package metrics
