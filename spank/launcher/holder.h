/* SPDX-License-Identifier: Apache-2.0 */
/* holder.h: the process that holds one sandbox. */
#ifndef GOJAIL_HOLDER_H
#define GOJAIL_HOLDER_H

#include "gojail.h"

/*
 * A child of the zygote's: takes a request from talk, and is the holder from there on (include/gojail.h). Writes its header
 * to told, a pipe, if a job to come is likely to ask the same.
 */
__attribute__((noreturn)) void run_holder(int talk, int requests);

/*
 * A child of the zygote's that has begun a sandbox of that kind before anybody asks: a first step then waits for less.
 * Accepts who asks for one, and is its holder. Ends with the zygote, whose socket this is.
 */
__attribute__((noreturn)) void run_spare(int zygote, const struct gojail_request *pattern);

/* What a spare says there. */
#define SPARE_READY 'r' /* who asks now is the spare's to accept */
#define SPARE_BUSY 'b'	/* it has: the zygote is to accept those after */
#define SPARE_GIVES 'g' /* with a descriptor: talk to this one, for whom the spare is not made; ready again */

#endif
