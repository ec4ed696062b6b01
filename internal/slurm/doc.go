// SPDX-License-Identifier: Apache-2.0

// Package slurm asks slurmctld, with Slurm's own commands, for nodes, jobs and the statistics of its scheduler and
// RPCs. What the commands print is read as it comes, and never stored as a whole: of 100,000 jobs the counts are kept.
//
// Nodes and statistics are read as JSON (data_parser/v0.0.42, of Slurm 24.11 to 26.05) or as text; jobs as text always,
// of which the format is ours, and which is an eightieth of the JSON.
package slurm
