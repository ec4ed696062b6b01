/* SPDX-License-Identifier: Apache-2.0 */
/* lock.h: locks of the state directory, flock(2). */
#ifndef GOJAIL_LOCK_H
#define GOJAIL_LOCK_H

#include "common/fault.h"

#include <stdint.h>

/* Waits for the lock dir/name. Returns the descriptor that holds it, or -1 with a fault, in which what names the thing locked. */
int lock_until(int dir, const char *name, int64_t until, const char *what, struct fault *fault);

#endif
