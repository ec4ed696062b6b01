/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h: notices that a mount of a finished template is gone, or has moved with its directory. A package that
 * replaces a mount target by rename(2) takes the mount away, in all namespaces, and an exchanged directory takes it
 * along: sandboxes made later would show what is below.
 */
#ifndef GOJAIL_WATCH_H
#define GOJAIL_WATCH_H

#include "common/fault.h"

#include <stdbool.h>

/*
 * Opens the mounts of the caller's namespace, for whatever namespace it is in later; proc is the node's. Returns a
 * descriptor, or -1 with a fault.
 */
int watch_open(int proc, struct fault *fault);

/* Remembers the mounts of the template and of its stage, except those that come and go with the node's. Returns 0, or
 * -1 with a fault. */
int watch_remember(int template, int stage, struct fault *fault);

/*
 * Reports whether all mounts that were remembered are where they were, in a process that has the zygote's
 * descriptors. Without anew it reads them only a second after it did so
 * last, and not if they are very many. The kernel accesses no storage for it.
 */
bool watch_is_whole(bool anew);

#endif
