// SPDX-License-Identifier: Apache-2.0

// Package slurm runs Slurm's programs, for all of gojail's programs, and reads their output: rows of columns, the
// record of one node, and all nodes, jobs and statistics of slurmctld for the exporter. A program gets a bare
// environment and a deadline.
//
// Records have texts of users and administrators, with any content. squeue and sinfo are therefore asked for columns,
// of which a text is the last, between marks that nobody can know beforehand. sinfo has no row for a node without a
// partition, and reports a node that drains as ALLOCATED if scontrol says MIXED. So a node is read as JSON
// (data_parser/v0.0.42, of Slurm 24.11 to 26.05), or from scontrol's form of several lines, in which fields come before
// texts, and the reason is the first text. A record that cannot be read costs its own series, and is counted.
//
// The output for the exporter is parsed while it arrives, and never stored as a whole: of 100,000 jobs only the counts
// are kept. Jobs are read as columns with each release, because columns are an eightieth of their JSON. The package
// works with Slurm 22.05 and later.
package slurm
