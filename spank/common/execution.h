/* SPDX-License-Identifier: Apache-2.0 */
/* execution.h: how a parent learns that its child has executed a program. */
#ifndef GOJAIL_EXECUTION_H
#define GOJAIL_EXECUTION_H

#include "common/fault.h"

#include <stdint.h>
#include <sys/types.h>

/*
 * Waits until the child has executed a program, which closes its end of the pipe report, or has written there why it
 * could not. Kills it at the deadline; late is the fault then. Returns 0, or -1 with a fault.
 */
int execution_await(int report, pid_t child, int64_t until, const char *late, struct fault *fault);

#endif
