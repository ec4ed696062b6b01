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

#endif
