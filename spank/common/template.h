/* SPDX-License-Identifier: Apache-2.0 */
/* template.h: the zygote that lives in a jail's finished template. */
#ifndef GOJAIL_TEMPLATE_H
#define GOJAIL_TEMPLATE_H

#include "common/node.h"
#include "common/record.h"
#include "common/site.h"

#include <stdint.h>

/* Opens STATE/jails/JAIL, made if absent; -1 with a fault. */
int template_dir(const struct node *node, const char *jail, struct fault *fault);

/* Finds the zygote of this jail as it is configured now, or has it started. */
int template_get(const struct node *node, const struct jail *jail, int64_t until,
		 struct record *zygote, struct fault *fault);

/* Finds any live zygote of the jail, whatever it was configured like. */
int template_find(const struct node *node, const char *jail, struct record *zygote);

#endif
