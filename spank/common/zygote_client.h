/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_client.h: the process that lives in a finished template and forks a holder for each
 * sandbox; and when nobody asks a spare, which is the holder of the next.
 * Two sides of one socket: the launcher serves, slurmstepd asks.
 */
#ifndef GOJAIL_ZYGOTE_CLIENT_H
#define GOJAIL_ZYGOTE_CLIENT_H

#include "common/node.h"
#include "common/record.h"

#include <stdint.h>

/* Where the zygote ended before it took the request; another one may be there now. */
#define ZYGOTE_GONE (-2)

/* Connects: the zygote forks at once, or has done so before. A socket, -1 with a fault, or ZYGOTE_GONE. */
int zygote_connect(const struct node *node, const char *jail, int64_t until, struct fault *fault);

/* Asks for a holder. 0, -1 with a fault, or ZYGOTE_GONE. */
int zygote_ask(int talk, const char *jail, const struct gojail_request *request,
	       const struct gojail_tree *trees, int64_t until, struct record *holder, struct fault *fault);

/* Lets the holder live on, with its record dir/name. */
int zygote_keep(int talk, int dir, const char *name, struct fault *fault);

/* Opens the socket in the jail's state directory; the launcher, before it unshares. */
int zygote_listen(int dir, struct fault *fault);

/* Its descriptors, besides the stage at GOJAIL_STAGE_FD: the socket, and the node's /proc (proc_open). */
#define ZYGOTE_SOCKET_FD (GOJAIL_STAGE_FD + 1)
#define ZYGOTE_PROC_FD (GOJAIL_STAGE_FD + 2)

/* Serves for ever, inside the template after kept_find, with just these descriptors. */
__attribute__((noreturn)) void zygote_serve(void);

#endif
