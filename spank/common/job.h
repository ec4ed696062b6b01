/* SPDX-License-Identifier: Apache-2.0 */
/* job.h: a job's sandboxes on this node: found, or built. */
#ifndef GOJAIL_JOB_H
#define GOJAIL_JOB_H

#include "common/node.h"
#include "common/record.h"
#include "common/site.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define SANDBOX_NAME_MAX (GOJAIL_NAME_MAX + 1 + 16)

/* The sandbox that a step asks for. */
struct sandbox_spec {
	char job[32];
	struct user user;
	const char *mounts;           /* the --jail-mount list, or NULL */
	const char *net;              /* the label of the rails, or NULL for the node's network */
	const char *root;             /* self or range, or NULL: no user namespace */
	const char *gpus, *nics;      /* what Slurm gave the job, in its own words; may be NULL */
	char script[GOJAIL_PATH_MAX]; /* directory of the batch script, or "" */
	int64_t allocated; /* of which allocation of the job (allocation.h), where no step has begun, and a session
			      asks; 0 otherwise */
};

/* Reports whether the step asks for --jail-root=range, whose mounts are prepared in Go. */
static inline bool spec_is_range(const struct sandbox_spec *spec)
{
	return spec->root && strcmp(spec->root, "range") == 0;
}

struct sandbox {
	int mnt, stage;               /* mount namespaces: the jail and its stage; -1: none */
	int root;                     /* of the jail, O_PATH */
	int net, pid, ipc, uts, user; /* the job's namespaces; -1: the node's */
	int holder;                   /* pidfd of the process that holds them */
	bool made;                    /* it was not there before */
};

#define SANDBOX_NONE                                                                                                   \
	{                                                                                                              \
		.mnt = -1, .stage = -1, .root = -1, .net = -1, .pid = -1, .ipc = -1, .uts = -1, .user = -1,            \
		.holder = -1                                                                                           \
	}

/*
 * Opens the job's sandbox of this jail, and builds it if it does not exist; all steps of the job with the same jail and
 * mounts get the same one. Building one with mounts or rails starts a launcher, as Go does that. Returns 0, or -1 with
 * a fault.
 */
int sandbox_open(struct sandbox *sandbox, const struct node *node, const struct site *site, const struct jail *jail,
		 const struct sandbox_spec *spec, struct fault *fault);

/*
 * Has a launcher build the sandbox, by one of its verbs sandbox, session and login (gojail.h): in a cgroup of its own,
 * and under the locks that building takes. It ends with the process parent, unless that is 0. Returns 0, or -1 with a
 * fault.
 */
int sandbox_launch(const char *verb, pid_t parent, const struct node *node, const char *jail,
		   const struct sandbox_spec *spec, int64_t until, struct fault *fault);

/* What Go does for a sandbox; the launcher alone has such calls. */
struct sandbox_go {
	/* Opens the trees of the user's mounts. */
	int (*trees)(const struct sandbox_spec *spec, struct gojail_tree *trees, uint32_t *count, struct fault *fault);
	/* Attaches the job's rails to the network namespace of the holder; or, with attached, shows a further holder
	 * their devices. */
	int (*net)(const struct record *holder, bool attached, struct fault *fault);
	/* Maps the ids of the tree of the batch script, where --jail-root asks for that. */
	int (*script)(const struct sandbox_spec *spec, int tree, struct fault *fault);
};

/* Builds the sandbox, unless another step of the job was faster. go may be NULL. Returns 0, or -1 with a fault. */
int sandbox_build(struct sandbox *sandbox, const struct node *node, const struct site *site, const struct jail *jail,
		  const struct sandbox_spec *spec, const struct sandbox_go *go, int64_t until, struct fault *fault);

void sandbox_close(struct sandbox *sandbox);

#endif
