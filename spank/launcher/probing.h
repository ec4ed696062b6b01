/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probing.h: the zygote's answers to those that ask whether the storage of its jail answers (common/storage.h). A
 * prober, its child, accesses the storage, so that the zygote never hangs in it.
 */
#ifndef GOJAIL_PROBING_H
#define GOJAIL_PROBING_H

#include "launcher/origin.h"

#include <poll.h>
#include <stdint.h>

/* The most descriptors that the zygote waits for on behalf of this file. */
#define PROBING_WAITS_MAX 514

/* Sets the time of the open file GOJAIL_STORAGE to now: the storage has just answered. */
void probing_note_good(int file);

/* Begins to serve, with the zygote's descriptors. */
void probing_begin(const struct origin *origin);

/* Does what is due: replies, and starts or kills the prober. Lists what to wait for. Returns how many these are. */
int probing_prepare(struct pollfd *wait);

/* Returns the time of clock_ms at which something is due, or INT64_MAX. */
int64_t probing_next(void);

/* Handles the events of what probing_prepare listed. */
void probing_handle(const struct pollfd *wait, int count);

/* Ends the prober, which waits to be asked. Reports whether there was one. */
bool probing_rest(void);

/* Closes in a child of the zygote what only the zygote and its prober are to have: clients, storage, the way to the
 * node's mounts. */
void probing_forget(void);

#endif
