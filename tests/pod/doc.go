// SPDX-License-Identifier: Apache-2.0

// Package pod tests gojail in containers that podman runs, as Slinky's pods run Slurm in Kubernetes: from Debian's packages
// of Slurm and gojail's own, with auth/slurm, configless, as dynamic nodes.
//
// The tests' host is one process in mount, PID, network, UTS, IPC and cgroup namespaces of its own (tests/pod/host), where
// podman runs and the volumes are mounted. With that process all containers, mounts and interfaces end.
//
//	ctl  slurmctld, where users submit too, in the host's network
//	n1   slurmd, in a network of its own that is connected to the host's
//
// Each container has a root of its own, an overlay over the one of tests/releases/make, into which apt has installed the
// packages. Its configuration comes from directories that look as Kubernetes makes those of ConfigMaps and Secrets.
//
// Slurm refuses cgroup/v2 on a machine that has both versions of cgroups. There, slurmd runs with a library that shows it
// only the line of v2 in /proc/PID/cgroup (tests/pod/unified). Its cgroups are real, with such controllers as the machine
// does not use for v1.
package pod
