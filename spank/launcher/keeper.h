/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h: the child of a zygote that knows whether the storage of its jail answers. It never touches that itself: a prober does.
 * The other side of its socket is common/storage.h.
 */
#ifndef GOJAIL_KEEPER_H
#define GOJAIL_KEEPER_H

#include "launcher/origin.h"

#include <sys/types.h>

/* Notes in the open file GOJAIL_STORAGE that the storage answers now. */
void keeper_note_good(int file);

/* Serves for ever on the socket; zygote is its parent, with which it ends. file is the open file GOJAIL_STORAGE. */
__attribute__((noreturn)) void serve_as_keeper(const struct origin *origin, pid_t zygote, int listener, int file);

#endif
