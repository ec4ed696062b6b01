// SPDX-License-Identifier: Apache-2.0

// Package gres describes a node's VFs and GPUs to Slurm: by the lines for gres.conf, the
// node's line for slurm.conf, and the files that Slurm requires.
//
// Slurm tracks each single VF only if gres.conf names a File for it, and slurmd requires
// that each of these files is a device when it starts. The kernel has no suitable file:
// /dev/infiniband/uverbsN changes with each move between network namespaces, and an
// interface is not a file. Therefore each VF gets its own device node below /dev/gojail.
// Its major number is one for local use (120, Documentation/admin-guide/devices.txt) and
// has no driver: to open it fails with ENXIO, or with EPERM if Slurm's device cgroup does
// not allow the VF, which identifies the VFs of a step reliably. The trailing number
// counts the VFs of one GRES name in the order of gres.conf, so it is also Slurm's index.
//
// Slurm has a plugin for the name "nic": it sets SLURM_STEP_NICS, or in a batch
// script SLURM_JOB_NICS, to "mlx4_0,mlx4_3" with these numbers, whatever the
// card; FindGiven reads it. A GRES of any other name is counted, but no variable names
// the VFs of a step. On 22.05 its files are not in the device cgroup.
//
// GPUs are named as by AutoDetect=nvml. Leave their lines out if gres.conf has
// AutoDetect.
//
// All VFs must exist (package provision) and be in the node's namespace. Slurm's numbers
// must not change while jobs run, so drain the node before policies change.
package gres
