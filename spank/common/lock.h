/* SPDX-License-Identifier: Apache-2.0 */
/* lock.h: one process at a time builds what is in a directory. */
#ifndef GOJAIL_LOCK_H
#define GOJAIL_LOCK_H

#include "common/fault.h"

#include <stdint.h>

/* Waits for the lock dir/name; the descriptor holds it. what is for the message. */
int lock_until(int dir, const char *name, int64_t until, const char *what, struct fault *fault);

#endif
