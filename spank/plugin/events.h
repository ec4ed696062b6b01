/* SPDX-License-Identifier: Apache-2.0 */
/* events.h: the lines of the plugin in the journal; docs/metrics.md has their fields. */
#ifndef GOJAIL_EVENTS_H
#define GOJAIL_EVENTS_H

#include "plugin/step.h"

#include <slurm/spank.h>
#include <stdint.h>

/* The first step of a job in a jail has its sandbox. */
void event_entered(const struct step *step, spank_t sp, uint32_t id, const char *jail);

/* A step cannot enter its jail, which may be "": the reason is in the latch. */
void event_failed(const struct step *step, spank_t sp, uint32_t id, const char *jail);

/* What is known of a job that ends, read before its records are removed. */
struct summary {
	bool known;
	char uid[16];
	char jails[256], versions[256]; /* separated by commas */
	char memory[32];                /* bytes, at most; "" where no cgroup says so */
};

void summary_read(struct summary *summary, const struct node *node, const char *job);

/* A job has ended; fault is why not all of it is gone, or empty. */
void event_ended(const struct summary *summary, const char *job, const struct fault *fault);

#endif
