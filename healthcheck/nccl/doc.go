// SPDX-License-Identifier: Apache-2.0

// Package nccl tests GPUs and their network with all_reduce_perf of nccl-tests, run
// as ordinary jobs on idle nodes: each node alone, then in pairs.
//
// A round is nodes, and tests of them with results: a file, so that a round that
// was killed goes on with the next start, and plan.go tells from it what to test
// next and which nodes are bad. The rest is one file each: what a job wrote
// (output.go), what to think of it (judge.go), the jobs (slurm.go), their round
// (run.go), drained nodes that are tested again (retest.go), the drains (settle.go).
//
// A node is bad if it is slow or wrong with two partners that both pass with
// somebody else in the same round. What says nothing of a node (a job that
// crashed, hung, was refused, cancelled, preempted or suspended, output that ends
// early or is of other GPUs than expected) never drains one.
//
// Slurm 22.05 or later: sinfo, squeue, sbatch, scancel, scontrol. Needs root.
package nccl
