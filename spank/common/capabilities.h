/* SPDX-License-Identifier: Apache-2.0 */
/* capabilities.h: what a process gives up of capabilities(7), but for the bounding set (confine.c). */
#ifndef GOJAIL_CAPABILITIES_H
#define GOJAIL_CAPABILITIES_H

#include <stdint.h>

/*
 * Drops all capabilities but those, bit by number: what is permitted of them is effective then, and none is
 * inheritable. The process may lack some. Returns 0, or -1 with errno.
 */
int capabilities_keep(uint64_t those);

/* Drops the inheritable capabilities but those and, with them, the ambient ones. Returns 0, or -1 with errno. */
int capabilities_keep_inheritable(uint64_t those);

#endif
