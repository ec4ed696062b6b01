/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h: the way of a process into a sandbox for good: of a task, a session, or a command of root's. */
#ifndef GOJAIL_INSIDE_H
#define GOJAIL_INSIDE_H

#include "common/confine.h"
#include "common/fault.h"
#include "common/sandbox.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Sets the fault after a setns(2) that failed with that errno. Returns -1. */
int fault_not_entered(const char *what, struct fault *fault);

/* Moves the calling task into the sandbox, before it becomes the user. Returns 0, or -1 with a fault. */
int enter_sandbox(const struct sandbox *sandbox, struct fault *fault);

/* Gives up there what the jail's tasks give up, except for the uid; domain is one of domain_open, or -1. Returns 0, or
 * -1 with a fault. */
int confine_inside(const struct sandbox *sandbox, const struct confine *confine, int *domain, struct fault *fault);

/*
 * Changes to the home directory of that user, whom the calling process is, or to / if the user may not enter it, as
 * login(1) does: storage may make root another user (root_squash, exports(5)). Returns 0, or -1 with a fault.
 */
int enter_home(const char *home, const char *user, struct fault *fault);

/* Returns the first path of a list that ends with NULL at which there is a program to execute, or NULL. */
const char *find_executable(const char *const *paths);

/*
 * Waits until the child has executed a program, which closes its end of the pipe report, or has written there why it
 * could not. Kills it at the deadline; late is the fault then. Returns 0, or -1 with a fault.
 */
int execution_await(int report, pid_t child, int64_t until, const char *late, struct fault *fault);

/*
 * Makes the calling process, which is the user already, root in the sandbox, if that has a user namespace: after
 * confine_begin, gives up the rest of what a task gives up, and lets root there open stdin, stdout and stderr again by
 * name, such as /dev/stdout. With --jail-root=range the user, who owns these files, is nobody there. A file that cannot
 * be opened again can still be used by its descriptor. Returns 0, or -1 with a fault.
 */
int enter_as_root_with_files(const struct sandbox *sandbox, const struct confine *confine, struct fault *fault);

#endif
