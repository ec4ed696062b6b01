/* SPDX-License-Identifier: Apache-2.0 */
/* enter.h: moves a task into its sandbox for good. */
#ifndef GOJAIL_ENTER_H
#define GOJAIL_ENTER_H

#include "common/fault.h"
#include "common/sandbox.h"

#include <stdbool.h>

/* Moves the calling task into the sandbox, before it becomes the user. Returns 0, or -1 with a fault. */
int enter_sandbox(const struct sandbox *sandbox, struct fault *fault);

/* Makes the calling task, which is the user already, root in the sandbox. Returns 0, or -1 with a fault. */
int enter_as_root(const struct sandbox *sandbox, struct fault *fault);

/* Reports whether the calling task is in the PID namespace of the sandbox, if that has one. */
bool is_in_pid_namespace(const struct sandbox *sandbox);

#endif
