/* SPDX-License-Identifier: Apache-2.0 */
/* visit.h: work in another mount namespace, which the caller itself never enters. */
#ifndef GOJAIL_VISIT_H
#define GOJAIL_VISIT_H

#include <sys/types.h>

/*
 * Runs work in another mount namespace: in a child process that shares the caller's memory and descriptors and has its
 * own namespaces, root, working directory, umask and identity. The caller is suspended, and stays where it is whatever
 * fails: root must not go on in a jail because it cannot return from there. Returns what work returns, or -1 with errno
 * if the child did not finish.
 */
int visit(int mnt, int (*work)(void *), void *what);

/* The same in the caller's own namespace as that effective user, whose rights the caller then does not have to give
 * back. */
int visit_as_user(uid_t user, int (*work)(void *), void *what);

/* Returns a detached copy of a mount of that namespace, or of its root as clone_root does (NULL), or -1 with errno. */
int visit_clone_mount(int mnt, const char *path);

#endif
