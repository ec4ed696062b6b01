/* SPDX-License-Identifier: Apache-2.0 */
/* signals.h: the state of all signals of a process, which outlives execve(2). */
#ifndef GOJAIL_SIGNALS_H
#define GOJAIL_SIGNALS_H

#include <stdbool.h>

/*
 * Sets all signals to their defaults, also those that the C library keeps for itself and ignores in what
 * posix_spawn(3) starts. Blocks all signals, or none.
 */
void signals_reset(bool blocked);

#endif
