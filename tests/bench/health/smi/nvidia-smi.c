// SPDX-License-Identifier: Apache-2.0

// A stand-in for nvidia-smi that costs next to nothing: what is measured is who calls it.
// It has no start of libc (-nostartfiles), which takes ten times as long as the rest.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void _start(void)
{
	static const char rows[] = ROWS;
	struct timespec pause = {0, PAUSE_NS};

	syscall(SYS_nanosleep, &pause, NULL);
	syscall(SYS_write, STDOUT_FILENO, rows, sizeof(rows) - 1);
	syscall(SYS_exit_group, 0);
}
