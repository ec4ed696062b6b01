/* SPDX-License-Identifier: Apache-2.0 */
/* place.h: verifies that this process is root on the node itself, finds gojail there, and knows what started it. */
#ifndef GOJAIL_PLACE_H
#define GOJAIL_PLACE_H

#include "common/fault.h"
#include "common/node.h"

#include <stdbool.h>

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

/*
 * Reports whether root runs a command as the user by su(1) or runuser(1), as scripts of the administrator's do in a
 * Prolog, in an Epilog or by cron(8). The parent is one of these programs, and its real uid is root's, too: that of su
 * is the caller's.
 */
bool starter_is_root(char *const *argv);

#endif
