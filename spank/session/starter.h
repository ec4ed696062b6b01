/* SPDX-License-Identifier: Apache-2.0 */
/* starter.h: what has started the session. */
#ifndef GOJAIL_STARTER_H
#define GOJAIL_STARTER_H

#include <stdbool.h>

/*
 * Reports whether root runs a command as the user by su(1) or runuser(1), as scripts of the administrator's do in a
 * Prolog, in an Epilog or by cron(8). The parent is one of these programs, and its real uid is root's, too: that of su
 * is the caller's.
 */
bool starter_is_root(char *const *argv);

#endif
