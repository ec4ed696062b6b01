/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h: moves the launcher out of its caller's cgroup. */
#ifndef GOJAIL_CGROUP_H
#define GOJAIL_CGROUP_H

/*
 * Moves the launcher out of the step's cgroup. Slurm kills, or waits for, what it finds there, and limits its memory
 * and devices; 26.05 drains the node for a process that outlives its step. A user may freeze the cgroup of a session.
 * Both versions of cgroups, and both at once (systemd's hybrid hierarchy); a failure is harmless.
 */
void cgroup_leave(void);

#endif
