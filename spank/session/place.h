/* SPDX-License-Identifier: Apache-2.0 */
/* place.h: makes sure that this program is root's on the node, and finds out where gojail is there. */
#ifndef GOJAIL_PLACE_H
#define GOJAIL_PLACE_H

#include "common/fault.h"
#include "common/node.h"

/*
 * Refuses to go on where root is not the node's: without the set-user-ID bit, in a user namespace, in another mount namespace than
 * process 1, in a jail. Returns 0, or -1 with a fault.
 */
int place_check(struct fault *fault);

/*
 * Finds the installation and reads GOJAIL_SESSION_CONFIG. Nothing of it depends on the caller: the command line is not read.
 * Returns 0, or -1 with a fault.
 */
int place_find(struct node *node, struct fault *fault);

#endif
