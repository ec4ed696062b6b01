/* SPDX-License-Identifier: Apache-2.0 */
/* template.h: a jail and its stage, assembled once for all jobs of the node. */
#ifndef GOJAIL_TEMPLATE_H
#define GOJAIL_TEMPLATE_H

#include "common/fault.h"
#include "common/node.h"

#include <stdint.h>

/*
 * Assembles the template of the jail that the words name, and stays as its zygote. Returns 0 where another launcher was
 * faster, or -1 with a fault.
 */
int template_serve(const struct node *node, int64_t until, struct fault *fault);

#endif
