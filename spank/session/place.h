/* SPDX-License-Identifier: Apache-2.0 */
/* place.h: verifies that this process is root on the node itself, and finds the installation of gojail there. */
#ifndef GOJAIL_PLACE_H
#define GOJAIL_PLACE_H

#include "common/fault.h"
#include "common/node.h"

/*
 * Fails unless this process is root on the node: it fails without the set-user-ID bit, in a user namespace, in another
 * mount namespace than that of process 1, and in a jail. Returns 0, or -1 with a fault.
 */
int place_check(struct fault *fault);

/*
 * Finds the installation and reads GOJAIL_SESSION_CONFIG. The result does not depend on the caller: the command line is
 * not read. Returns 0, or -1 with a fault.
 */
int place_find(struct node *node, struct fault *fault);

#endif
