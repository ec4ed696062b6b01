// SPDX-License-Identifier: Apache-2.0

// Command bench measures what a launch costs with gojail, against plain Slurm
// and against other ways to give a step another root.
//
// It starts private clusters (tests/harness), one after the other, that share the
// rounds. Each has a node, that is a slurmd, for every candidate of candidates.go, in
// an order of its own. A node differs from the others in its
// plugstack.conf alone; srun uses that node's configuration, so that the plugin
// is loaded on both sides. A round is one launch on every node in shuffled
// order; what is compared is the difference within a round, whose median is
// reported with a 95 % confidence interval (bootstrap). plain2 is a second plain
// node: how far it seems to be from plain is what the method cannot tell apart.
//
// Wall time is srun's, from spawn to exit. srun -n1 hides some 5 ms of what a
// task does after its fork, so the CPU time of the node counts as much: the
// cgroup of the candidate, which holds slurmd, slurmstepd, the task, and for
// gojail its launcher, zygote and holders too. These leave Slurm's cgroups for
// the root of the hierarchy; each slurmd lives in a mount namespace where that
// root is the candidate's own cgroup, and so nothing escapes the counter.
//
// slurmd has HWLOC_PLUGINS_PATH set: without it slurmstepd loads graphics
// libraries of the host, 3.5 ms a launch, and a candidate that hides them from
// slurmstepd seems faster than no plugin at all.
//
// Needs root, the packages that tests/deps.sh installs, bwrap, and make all.
package main
