/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_client.h: the process that lives in a jail's finished template: found, started where there is none, and asked
 * over its socket for the holder of a sandbox. The other side of that socket is launcher/zygote.h.
 */
#ifndef GOJAIL_ZYGOTE_CLIENT_H
#define GOJAIL_ZYGOTE_CLIENT_H

#include "common/node.h"
#include "common/record.h"
#include "common/site.h"

#include <stdint.h>

/* Finds any live zygote of the jail, whatever its configuration was. Returns 0 or -1. */
int zygote_find(const struct node *node, const char *jail, struct record *zygote);

/* The same, but the zygote may have ended: for a caller who connects to it, which shows that. */
int zygote_read(const struct node *node, const char *jail, struct record *zygote);

/* Finds the zygote of this jail as it is configured now, or starts it. Returns 0, or -1 with a fault. */
int zygote_find_or_start(const struct node *node, const struct jail *jail, int64_t until, struct record *zygote,
			 struct fault *fault);

/*
 * Replaces this zygote by one of a template that is assembled now, unless another launcher has done so since. The old
 * one is killed, also if it is stopped; the sandboxes of jobs live on. Returns 0, or -1 with a fault; the old one is
 * there then.
 */
int zygote_replace(const struct node *node, const struct jail *jail, const struct record *zygote, int64_t until,
		   struct fault *fault);

/* The zygote ended before it took the request; another one may serve by now. */
#define ZYGOTE_GONE (-2)

/*
 * The zygote lives and has not answered in time: it or its spare is stopped, frozen, or hangs in the kernel.
 */
#define ZYGOTE_STUCK (-3)

/*
 * Returns the time by which a zygote must have answered, so that there is time left to replace it. A zygote has some
 * time after its own start in any case, so that the launches on a node without free CPU time do not replace each
 * other's zygotes.
 */
int64_t zygote_find_deadline(const struct record *zygote, int64_t until);

/*
 * Connects to a socket of the jail: the zygote's, which forks at once, or has done so before, or the one for questions
 * about its storage. Returns it, -1 with a fault, ZYGOTE_GONE, or ZYGOTE_STUCK if its queue is full until then.
 */
int zygote_connect(const struct node *node, const char *jail, const char *name, int64_t until, struct fault *fault);

/*
 * Asks for a holder, whose pid the zygote answers at once: before answer_by, or it counts as stuck. Returns 0, -1
 * with a fault, ZYGOTE_GONE or ZYGOTE_STUCK.
 */
int zygote_ask(int talk, const char *jail, const struct gojail_request *request, const struct gojail_tree *trees,
	       int64_t answer_by, int64_t until, struct record *holder, struct fault *fault);

/* Lets the holder live on, with its record dir/name. Returns 0, or -1 with a fault. */
int zygote_keep(int talk, int dir, const char *name, struct fault *fault);

#endif
