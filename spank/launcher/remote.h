/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h: the mounts of a template whose storage others than this node serve, each as an open descriptor: one request asks it. */
#ifndef GOJAIL_REMOTE_H
#define GOJAIL_REMOTE_H

#include "launcher/origin.h"

#include <stdbool.h>
#include <stdint.h>

/* Their descriptors begin here, above all others of a zygote. */
#define REMOTE_FIRST_FD 64

/*
 * Adds those of the calling process's mount namespace that are not there yet, opened by a child: the storage may hang. proc is the node's /proc.
 * Not there are those of root's users (FUSE): they stop nobody's jobs but their own. Returns 0, or -1 with a fault.
 */
int remote_collect(int proc, const struct origin *origin, int64_t until, struct fault *fault);

/* Returns how many there are. */
int remote_count(void);

/* Returns the descriptor of one, and "SOURCE (TYPE) at PATH". */
int remote_fd(int number);
const char *remote_place(int number);

/* Asks the storage of an open directory: one request (GETATTR). Returns 0, or an errno, unless storage that answered denies root the attributes. */
int remote_ask(int fd);

/* Reports whether an error of a mount means that it never comes back: the directory was removed on the server, or the server was. */
bool remote_is_stale(int error);

/*
 * Reports whether it was lost when the template was made, less than a minute ago: another template would have it as well. Later it is
 * worth another try: an administrator may have mounted it again.
 */
bool remote_was_stale(int number);

#endif
