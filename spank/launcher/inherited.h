/* SPDX-License-Identifier: Apache-2.0 */
/* inherited.h: what the launcher does to its own process before its verb: it drops what its starter left, and protects
 * its file. */
#ifndef GOJAIL_INHERITED_H
#define GOJAIL_INHERITED_H

#include "common/fault.h"

/*
 * Brings this process into the known state of docs/inheritance.md, whoever started it: a user's session, slurmstepd,
 * or an administrator's shell. The zygote, the holders and the watcher that come from it serve all users. Returns 0,
 * or -1 with a fault if the starter left something that the launcher cannot work with, or that would stay the
 * starter's.
 */
int inherited_reset(struct fault *fault);

/*
 * Executes the launcher again from a read-only mount of its file, with the same arguments and libdir=DIRECTORY after
 * the verb: the path does not tell the directory any more. Returns 0 in the process that runs from such a mount, or -1
 * with a fault.
 *
 * What root runs in a jail may be a link to /proc/self/exe, and so the launcher, loaded with the libraries of the jail:
 * root there could write into the node's file as soon as nobody runs it.
 */
int own_file_protect(char **argv, const char *directory, struct fault *fault);

#endif
