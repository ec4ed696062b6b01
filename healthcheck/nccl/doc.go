// SPDX-License-Identifier: Apache-2.0

// Package nccl tests GPUs and their network with all_reduce_perf of nccl-tests, run as ordinary
// jobs on idle nodes: each node alone, then in pairs.
//
// A round is a set of nodes and tests with results, stored in a file: the next start continues
// a round that was killed. plan.go determines from it the next tests and the bad nodes. Each
// other part is one file: parsing a job's output (output.go), judging it (judge.go), the jobs
// (slurm.go), their round (run.go), retests of drained nodes (retest.go), the drains
// (conclude.go).
//
// A node is bad if it is slow or wrong with two partners that both pass with another node in
// the same round. Results that prove nothing about a node (a job that crashed, hung, was
// refused, cancelled, preempted or suspended, output that is truncated or from other GPUs than
// expected) never drain it. Nor does a slow pair without NVLinks between its nodes, where no such pair
// has passed: NCCL logs the NVLink domains (cluster UUID and clique of NVML) of the GPUs.
//
// The package needs Slurm 22.05 or later (sinfo, squeue, sbatch, scancel, scontrol) and root.
package nccl
