/* SPDX-License-Identifier: Apache-2.0 */
/* job.h: builds the sandbox of a step, or finds it; and changes what a built one shows. */
#ifndef GOJAIL_JOB_H
#define GOJAIL_JOB_H

#include "common/sandbox.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

/* The building of one sandbox: what is asked for, and what comes of it. */
struct build {
	const struct node *node;
	const struct site *site;
	const struct jail *jail;
	const struct sandbox_spec *spec;
	const struct sandbox_go *go; /* or NULL */
	int64_t until;
	struct fault *fault;
	struct sandbox *sandbox;
	char name[SANDBOX_NAME_MAX + 1];
	int job;                        /* the job's state directory, which is locked */
	bool first;                     /* no sandbox is there */
	struct gojail_request *request; /* to the zygote */
	struct gojail_tree *trees;      /* of the request, which the caller closes */
};

/*
 * Collects /tmp, /dev/shm, the batch script's directory and, except for --jail-root=range, munge's socket: all but the
 * user's mounts, and what the holder mounts itself. Returns 0, or -1 with a fault.
 */
int collect_job_mounts(const struct build *build);

/* Adds a tree to the request of a build, as add_tree does. */
int job_add_tree(const struct build *build, int fd, const char *destination, uint32_t flags);

/* Reports whether the sandbox shows the step's batch script, if it has one: a sandbox that another step built lacks it.
 */
bool job_has_script(const struct sandbox *sandbox, const struct sandbox_spec *spec);

/* Shows the batch script in a sandbox that another step built, where Slurm executes it. Returns 0, or -1 with a fault.
 */
int job_show_script(const struct build *build);

/* Reports whether the sandbox shows munge's socket as it is now, if munged runs: munged creates a new one whenever it
 * starts. */
bool job_has_munge(const struct sandbox *sandbox, const struct jail *jail);

/* Shows munge's socket in a sandbox, in the place of an earlier one. Returns 0, or -1 with a fault. */
int job_show_munge(const struct sandbox *sandbox, const struct jail *jail, struct fault *fault);

/*
 * Adds a tree for the holder: a descriptor, and where to attach it or what the flags say. Returns 0 or -1; with a fault
 * if there are too many, without one where fd is -1.
 */
int add_tree(struct gojail_tree *trees, uint32_t *count, int fd, const char *destination, uint32_t flags,
	     struct fault *fault);

#endif
