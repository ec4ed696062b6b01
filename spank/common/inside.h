/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h: the way of a process into a sandbox for good: of a task, a session, or a command of root's. */
#ifndef GOJAIL_INSIDE_H
#define GOJAIL_INSIDE_H

#include "common/fault.h"
#include "common/sandbox.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Moves the calling task into the sandbox, before it becomes the user. Returns 0, or -1 with a fault. */
int enter_sandbox(const struct sandbox *sandbox, struct fault *fault);

/* Makes the calling task, which is the user already, root in the sandbox. Returns 0, or -1 with a fault. */
int enter_as_root(const struct sandbox *sandbox, struct fault *fault);

/* Reports whether the calling task is in the PID namespace of the sandbox, if that has one. */
bool is_in_pid_namespace(const struct sandbox *sandbox);

/*
 * Waits until the child has executed a program, which closes its end of the pipe report, or has written there why it
 * could not. Kills it at the deadline; late is the fault then. Returns 0, or -1 with a fault.
 */
int execution_await(int report, pid_t child, int64_t until, const char *late, struct fault *fault);

/*
 * reopen_permit and reopen_files let root of a user namespace open its stdin, stdout and stderr again by name, such as
 * /dev/stdout: with --jail-root=range the user, who owns them, is nobody there. root is the jail's. A file that cannot
 * be opened again can still be used by its descriptor.
 */

/* Called as the user: opens the user's pipes, and terminals of the job's own, to all ids. No other user's process
 * reaches them (ptrace(2)). */
void reopen_permit(int root);

/*
 * Called as root there: replaces files of the user's by the same ones at the same paths of the jail, where they are
 * root's. What is written without O_APPEND, which Slurm sets (io_get_file_flags in its io.c), stays: processes would no
 * longer share where the next one writes.
 */
void reopen_files(int root);

#endif
