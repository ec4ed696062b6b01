// SPDX-License-Identifier: Apache-2.0

// Package metrics makes the metrics of a node, for the textfile collector of node_exporter. Data flows one
// way:
//
//	read.go    the state directory → Facts. It asks neither Slurm, nor the storage of a jail, nor a driver
//	facts.go   Facts: what is known of the node; netsetup's part is added by the command
//	names.go   the metrics and their labels; docs/metrics.md has the same list
//	render.go  Facts → text. Pure
//	file.go    text → one file, replaced as a whole
//
// The library of the launch path (spank/bridge) must not import it: the packages of Prometheus take
// memory, and time to load.
package metrics
