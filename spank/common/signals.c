/* SPDX-License-Identifier: Apache-2.0 */
#include "common/signals.h"

#include "common/syscalls.h"

#include <signal.h>
#include <stdint.h>

void signals_reset(bool blocked)
{
	/*
	 * struct sigaction of the kernel on 64 bits; where the architecture has no restorer, the rest is zero all the
	 * same
	 */
	static const struct {
		uint64_t handler, flags, restorer, mask;
	} none;
	sigset_t mask;

	(blocked ? sigfillset : sigemptyset)(&mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	for (int number = 1; number < NSIG; number++)
		syscall(SYS_rt_sigaction, number, &none, NULL, sizeof(none.mask));
}
