/* SPDX-License-Identifier: Apache-2.0 */
/* prober.h: the child of a keeper that asks the storage, and may hang in that. */
#ifndef GOJAIL_PROBER_H
#define GOJAIL_PROBER_H

#include "launcher/origin.h"

#include <stdint.h>

#define PROBER_AT_SOURCE (-1) /* it asks what the path of the root leads to */

/* What the prober found out. */
struct probe {
	int32_t verdict; /* GOJAIL_STORAGE_OK, _STALE, _SWITCHED or _FAILED */
	int32_t error;
	int32_t at; /* the number of a remote mount, or PROBER_AT_SOURCE */
};

/* Asks each remote mount of the template, and where its root comes from; *at is what it is asking, for others to see. */
struct probe prober_ask(const struct origin *origin, volatile int32_t *at);

#endif
