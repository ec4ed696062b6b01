/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reopen.h: lets root of a user namespace open its stdin, stdout and stderr again by name, as /dev/stdout. With
 * --jail-root=range the user, who owns them, is nobody there. root is the jail's. What fails can still be used by its
 * descriptor.
 */
#ifndef GOJAIL_REOPEN_H
#define GOJAIL_REOPEN_H

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
