/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h: the remote mounts of a template, whose storage is not on this node. Each has an open descriptor, by which
 * one request probes it. */
#ifndef GOJAIL_REMOTE_H
#define GOJAIL_REMOTE_H

#include "launcher/origin.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Adds and probes the remote mounts of the calling process's mount namespace that are not in the list yet. A child
 * opens them: the storage may hang. proc is the node's /proc. Mounts that a user serves (FUSE), below the root, are
 * left out: that user must not stop the jobs of others. Returns 0, or -1 with a fault.
 */
int remote_collect(int proc, const struct origin *origin, int64_t until, struct fault *fault);

/* Returns the number of remote mounts. */
int remote_count(void);

/* Returns the descriptor of a remote mount, or -1 if another mount hides it. */
int remote_fd(int number);

/* Returns the number after the last descriptor of a remote mount. They follow one another from REMOTE_FIRST_FD on. */
int remote_end_fd(void);

/* Returns "SOURCE (TYPE) at PATH" of a remote mount. */
const char *remote_place(int number);

/* Probes the storage of an open directory by one request (GETATTR). Returns 0 if the storage answered, also if it
 * denied root the attributes, else an errno. */
int remote_probe(int fd);

/* Reports whether an error means that a mount never works again: its directory no longer exists on the server, or the
 * server is gone. */
bool remote_is_stale(int error);

/*
 * Reports whether a mount was stale when the template was made, less than a minute ago: it would be stale in a new
 * template as well. Later a new template is worth an attempt: an administrator may have mounted it again.
 */
bool remote_was_stale(int number);

#endif
