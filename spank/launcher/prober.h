/* SPDX-License-Identifier: Apache-2.0 */
/* prober.h: the child of a zygote that accesses the storage, and may hang there. */
#ifndef GOJAIL_PROBER_H
#define GOJAIL_PROBER_H

#include "launcher/origin.h"

#include <stdint.h>

#define PROBER_AT_SOURCE (-1) /* stands for the path of the root in place of a mount's number */

/* The answer of a prober. */
struct probe {
	int32_t verdict; /* GOJAIL_STORAGE_OK, _STALE, _SWITCHED or _FAILED */
	int32_t error;   /* the errno of a failure, or 0 */
	int32_t at;      /* the number of a remote mount, or PROBER_AT_SOURCE */
};

/*
 * Probes each remote mount of the template, then the path of its root, each time that it is asked on the socket, where
 * it answers; until that ends; once without remote mounts, since it is seldom asked then. Stores in *at, which others
 * read, what it is probing. The process has nothing else of its zygote's.
 */
__attribute__((noreturn)) void prober_serve(const struct origin *origin, int talk, volatile int32_t *at);

#endif
