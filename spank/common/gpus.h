/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.h: the device nodes of the GPUs that Slurm gave the step. */
#ifndef GOJAIL_GPUS_H
#define GOJAIL_GPUS_H

#include "common/fault.h"
#include "common/node.h"
#include "common/site.h"

/* Shows the GPUs of the list, "0,2" or "4-7", in the sandbox, beside those of the job's other steps. Returns 0, or -1
 * with a fault. */
int show_gpus(const struct jail *jail, const char *list, int mnt, int root, struct fault *fault);

/*
 * Notes for `gojail metrics` and for the end of the job which GPUs a step of the job got, in a line JAIL LIST, once for
 * each. What fails here fails no step.
 */
void note_gpus(const struct node *node, const char *job, const struct jail *jail, const char *list);

#endif
