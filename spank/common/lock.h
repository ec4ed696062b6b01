/* SPDX-License-Identifier: Apache-2.0 */
/* lock.h: locks of the state directory, flock(2). */
#ifndef GOJAIL_LOCK_H
#define GOJAIL_LOCK_H

#include "common/fault.h"

#include <stdbool.h>
#include <stdint.h>

/* Waits for the lock dir/name. Returns the descriptor that holds it, or -1 with a fault, in which what names the thing
 * locked. */
int lock_until(int dir, const char *name, int64_t until, const char *what, struct fault *fault);

/* Waits for a lock of an open file, LOCK_SH or LOCK_EX, and tries again after each pause. Returns 0, or -1 at the
 * deadline. */
int lock_wait(int fd, int operation, int pause_ms, int64_t until);

/* Reports whether a process has a lock dir/name that excludes the operation. */
bool lock_is_held(int dir, const char *name, int operation);

#endif
