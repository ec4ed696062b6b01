/* SPDX-License-Identifier: Apache-2.0 */
/* holder.h: the process that holds one sandbox. */
#ifndef GOJAIL_HOLDER_H
#define GOJAIL_HOLDER_H

#include "gojail.h"

/*
 * Makes a child of the zygote the holder of the sandbox that is requested on talk (include/gojail.h). Writes the header
 * of the request to the pipe requests, if a later job is likely to ask for the same.
 */
__attribute__((noreturn)) void run_holder(int talk, int requests);

/*
 * Makes a child of the zygote a spare: it begins a sandbox of that kind before anybody asks for one, so that a first
 * step waits less, accepts a caller, and becomes the holder. Ends with the zygote, to which the socket leads.
 */
__attribute__((noreturn)) void run_spare(int zygote, const struct gojail_request *pattern);

/* Messages of a spare to the zygote. */
#define SPARE_READY 'r' /* the spare accepts the next caller */
#define SPARE_BUSY 'b'  /* the spare has accepted one: the zygote accepts the others */
/* With a descriptor: a caller that asks for another kind, for the zygote; the spare is ready again. */
#define SPARE_GIVES 'g'

#endif
