/* SPDX-License-Identifier: Apache-2.0 */
/* launches.h: counts the steps of a jail, for `gojail metrics`. Nothing here fails a step, waits, or takes a lock. */
#ifndef GOJAIL_LAUNCHES_H
#define GOJAIL_LAUNCHES_H

#include "common/node.h"
#include "gojail.h"

#include <stdint.h>

/*
 * Maps the counters of a jail, or with "" those of steps whose jail is not known, for this process and the tasks that
 * it forks. Returns NULL where that is not possible.
 */
struct gojail_launches *launches_map(const struct node *node, const char *jail);

/* The rest does nothing with NULL. */
void launches_count_entered(struct gojail_launches *launches, int64_t took_us);
void launches_count_failed(struct gojail_launches *launches, int reason);

#endif
