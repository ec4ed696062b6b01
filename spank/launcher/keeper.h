/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h: the child of a zygote that reports whether the storage of its jail answers. A prober, its own child, accesses the storage,
 * so that the keeper never hangs in it. The clients of its socket use common/storage.h.
 */
#ifndef GOJAIL_KEEPER_H
#define GOJAIL_KEEPER_H

#include "launcher/origin.h"

#include <sys/types.h>

/* Sets the time of the open file GOJAIL_STORAGE to now: the storage has just answered. */
void keeper_note_good(int file);

/* Serves requests on the socket until its parent, the zygote, ends. file is the open file GOJAIL_STORAGE. */
__attribute__((noreturn)) void serve_as_keeper(const struct origin *origin, pid_t zygote, int listener, int file);

#endif
