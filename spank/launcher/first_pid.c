/* SPDX-License-Identifier: Apache-2.0 */
/*
 * first_pid.c: the n-th namespace of a zygote counts from the fraction R + n/φ, without its integer part, of all
 * PIDs. R is random, φ the golden ratio. There are P = 4194304 PIDs from Linux 6.14 on, where pid_max is one per PID
 * namespace; before, P is the node's kernel.pid_max, which systemd sets to the same. On a node one counter serves
 * all jobs. Compared:
 *
 * - Namespaces of one zygote: multiples of 1/φ are as far apart as those of a number can be. Any n in a row begin at
 *   least P/(√5 n) apart: each of 100 jobs starts 18,700 processes before it reaches where another began, each of
 *   1000 jobs 1,870. No two of 1.8 million begin with the same PID. The counter of a node repeats its PIDs too,
 *   after P.
 * - Namespaces of two zygotes, thus of two nodes, jails or boots: two processes have the same PID with probability
 *   1/P. Of N files named by PID, two have the same name with probability 1 - exp(-N²/2P): 0.1 % for 100 files, 11 %
 *   for 1000. N nodes do the same without jails if their counters are far apart. Nodes that were booted at once have
 *   similar ones.
 *
 * With P = 32768 (before 6.14, without systemd) it is 14 % for 100 files, on nodes as in jails.
 */
#include "launcher/first_pid.h"

#include "common/fd.h"
#include "common/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RESERVED_PIDS 300u /* PIDs begin here again after the last one (kernel/pid.c) */

#define INSECURE 4 /* GRND_INSECURE of Linux 5.6: getrandom(2) does not wait for entropy */

static uint32_t position;

void first_pid_begin(void)
{
	if (syscall(SYS_getrandom, &position, sizeof(position), INSECURE) != sizeof(position))
		position = (uint32_t)getpid() * FIRST_PID_STEP;
}

void first_pid_advance(void) { position += FIRST_PID_STEP; }

uint32_t first_pid_choose(uint32_t at, uint32_t limit)
{
	return limit <= RESERVED_PIDS ? 0 : RESERVED_PIDS + (uint32_t)((uint64_t)at * (limit - RESERVED_PIDS) >> 32);
}

/* Opens a setting of the caller's PID namespace. /proc/sys may be read-only, as in containers: a new proc is not. */
static int open_setting(int proc, const char *path, int flags)
{
	int fd = openat(proc, path, flags | O_CLOEXEC);

	if (fd >= 0 || errno != EROFS)
		return fd;
	scoped_fd other = k_new_mount("proc", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return other < 0 ? -1 : openat(other, path, flags | O_CLOEXEC);
}

void first_pid_apply(int proc)
{
	char text[16];
	scoped_fd limit = open_setting(proc, "sys/kernel/pid_max", O_RDONLY);

	if (read_string(limit, text, sizeof(text)) <= 0)
		return;
	int length = snprintf(text, sizeof(text), "%u", first_pid_choose(position, (uint32_t)strtoul(text, NULL, 10)));
	scoped_fd last = open_setting(proc, "sys/kernel/ns_last_pid", O_WRONLY);
	if (last >= 0)
		write_ignored(last, text, (size_t)length);
}
