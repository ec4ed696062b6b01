/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.h: one job's set of namespaces on this node: found, or built. */
#ifndef GOJAIL_SANDBOX_H
#define GOJAIL_SANDBOX_H

#include "node.h"
#include "site.h"

#include <stdint.h>

#define SANDBOX_NAME_MAX (GOJAIL_NAME_MAX + 1 + 16)

/* Who asks for which sandbox. */
struct wish {
	char job[32];
	struct user user;
	const char *mounts; /* the --jail-mount list, or NULL */
	char script[GOJAIL_PATH_MAX]; /* directory of the batch script, or "" */
};

struct sandbox {
	int mnt, stage; /* mount namespaces; -1: none */
	char *mounts[GOJAIL_TREES_MAX]; /* destinations of the user's mounts */
	int nmounts;
};

#define SANDBOX_NONE {.mnt = -1, .stage = -1}

/*
 * Opens the job's sandbox of this jail, building it if need be; all steps of the
 * job with the same jail and mounts get the same one. A wish with mounts that is
 * not there yet starts a launcher, for the plan of the mounts is made in Go.
 */
int sandbox_open(struct sandbox *sandbox, const struct node *node, const struct site *site,
		 const struct jail *jail, const struct wish *wish, struct fault *fault);

/* Opens the trees of the user's mounts; only the launcher has such a call. */
typedef int (*sandbox_trees)(const struct wish *wish, struct gojail_tree *trees, uint32_t *count,
			     struct fault *fault);

/* Builds it, unless another step of the job was faster. */
int sandbox_build(struct sandbox *sandbox, const struct node *node, const struct site *site,
		  const struct jail *jail, const struct wish *wish, sandbox_trees user_trees,
		  int64_t until, struct fault *fault);

void sandbox_close(struct sandbox *sandbox);

#endif
