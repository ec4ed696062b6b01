/* SPDX-License-Identifier: Apache-2.0 */
/* munge.h: munge's socket in sandboxes that have outlived munged, or slurmd's in its place, which creates a new one
 * likewise. */
#ifndef GOJAIL_MUNGE_H
#define GOJAIL_MUNGE_H

#include "common/sandbox.h"

#include <stdint.h>

/* Shows munge's new socket in a sandbox of a job. If it fails, Slurm's commands fail there; the log says why. */
void munge_refresh(const struct sandbox *sandbox, const struct node *node, const struct jail *jail, const char *job,
		   int64_t until);

/* Starts a process that does so in all sandboxes of the node: their storage may be silent, and nobody waits for it. */
void munge_start_refresh(const struct node *node);

#endif
