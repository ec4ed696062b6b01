/* SPDX-License-Identifier: Apache-2.0 */
/* own_file.h: keeps the launcher's own file from what it executes in a jail. */
#ifndef GOJAIL_OWN_FILE_H
#define GOJAIL_OWN_FILE_H

#include "common/fault.h"

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
