// SPDX-License-Identifier: Apache-2.0

// Package gres tells Slurm about a node's VFs and GPUs: the lines for gres.conf,
// the node's line for slurm.conf, and the files that Slurm asks for.
//
// Slurm keeps track of each single VF only where gres.conf names a File for it,
// and slurmd demands that each is there when it starts, as a device. No file of
// the kernel's lasts: /dev/infiniband/uverbsN changes at each move between
// network namespaces, and an interface is no file. So each VF gets a device node
// of its own below /dev/gojail, whose major number is of those for local use
// (120, Documentation/admin-guide/devices.txt) and has no driver: opening one
// fails, with ENXIO, or with EPERM where Slurm's device cgroup withholds the VF,
// which is what tells a step's VFs beyond doubt. The trailing number counts the
// VFs of one GRES name in the order of gres.conf, so it is Slurm's index as well.
//
// Slurm has a plugin for the name "nic": it sets SLURM_STEP_NICS, or in a batch
// script SLURM_JOB_NICS, to "mlx4_0,mlx4_3" with these numbers, whatever the
// card; Given reads it. A GRES of any other name is counted, and no variable
// tells which VFs a step has. On 22.05 its files are not in the device cgroup.
//
// GPUs are written as AutoDetect=nvml would name them. Leave their lines out
// where gres.conf has AutoDetect.
//
// Needs VFs that are made (package provision) and in place; a number that Slurm
// has must not change while jobs run, so drain the node before policies change.
package gres
