/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h: what a process gives up: a task for good, before it becomes the user's program; others for a time. */
#ifndef GOJAIL_CONFINE_H
#define GOJAIL_CONFINE_H

#include "common/fault.h"
#include "common/node.h"
#include "common/site.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

/* What seccomp(2) calls the convention of calls of this program. */
#ifdef __x86_64__
#define CONFINE_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CONFINE_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

struct confine {
	bool no_new_privs;
	uint64_t bounding;           /* capabilities that stay, bit by number */
	unsigned short instructions; /* of filter; 0: no filter */
	struct sock_filter filter[BPF_MAXINSNS];
};

/* Reads what the jail asks for, before any task is there. */
int confine_read(struct confine *confine, const struct node *node, const struct jail *jail, struct fault *fault);

/* Gives it up, in the task, as root, when it is in its namespaces. Returns 0, or -1 with a fault. */
int confine_apply(const struct confine *confine, struct fault *fault);

/*
 * The same in two steps, for a task that is still to join a user namespace, which gives capabilities back:
 * confine_finish is due after that. Whatever happens in between, the task runs with no more.
 */
int confine_begin(const struct confine *confine, struct fault *fault);
int confine_finish(const struct confine *confine, struct fault *fault);

/*
 * Opens a Landlock domain whose abstract Unix sockets are its own, for abstract_sockets = "step". Returns a descriptor,
 * or -1 with a fault.
 */
int domain_open(struct fault *fault);

/* Moves the calling thread into the domain, and closes its descriptor. Returns 0, or -1 with a fault. */
int domain_enter(int *domain, struct fault *fault);

/*
 * Drops all capabilities(7) but those, bit by number, from all sets but the bounding one: what is permitted of them is
 * effective then, and none is inheritable. The process may lack some. Returns 0, or -1 with errno.
 */
int capabilities_keep(uint64_t those);

/* Drops the inheritable capabilities but those and, with them, the ambient ones. Returns 0, or -1 with errno. */
int capabilities_keep_inheritable(uint64_t those);

/*
 * Sets all signals to their defaults, also those that the C library keeps for itself and ignores in what
 * posix_spawn(3) starts. Blocks all signals, or none.
 */
void signals_reset(bool blocked);

#endif
