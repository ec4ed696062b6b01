// SPDX-License-Identifier: Apache-2.0

// Package harness runs a private Slurm on this machine: munged, slurmctld and
// two slurmd (n1, n2), from the distribution's own packages.
//
// Each cluster is a machine of its own: one process, the keeper, is pid 1 of a
// new mount, PID, network, UTS and IPC namespace and pivots into a root that
// shares /usr and /dev with this machine and has everything else (/etc, /run,
// /var, /home, /tmp, /srv) to itself. So Slurm runs with the paths, the users
// and the ports of a real site, any number of clusters run side by side, no
// file of this machine is touched, and the end is certain: with the keeper the
// kernel ends every process of the cluster and drops every mount. What the
// cluster keeps on disk is one directory, build/cluster/NAME.
//
// slurm.conf and plugstack.conf are the repository's slurm.conf.example and
// plugstack.conf.example with the lines of their site section replaced.
//
// Needs root, Linux 5.12 and the packages that tests/deps.sh installs.
package harness
