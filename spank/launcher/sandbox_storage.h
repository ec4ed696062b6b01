/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_storage.h: the storage of a sandbox that no zygote asks, since its template was replaced. */
#ifndef GOJAIL_SANDBOX_STORAGE_H
#define GOJAIL_SANDBOX_STORAGE_H

#include "common/fault.h"
#include "common/node.h"

#include <stdint.h>

/*
 * Probes each remote mount of the sandbox that the words job and sandbox name, of its stage and of its jail, by one
 * request; if all have answered, well or badly, the file SANDBOX.storage gets the time. Moves this process into the
 * sandbox's mount namespace. Returns 0, or -1 with a fault.
 */
int sandbox_storage_probe(const struct node *node, int64_t until, struct fault *fault);

#endif
