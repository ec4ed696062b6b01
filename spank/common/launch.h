/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h: runs gojail-launcher, and never waits for it past the deadline; and the verbs that several programs need.
 */
#ifndef GOJAIL_LAUNCH_H
#define GOJAIL_LAUNCH_H

#include "common/fault.h"
#include "common/node.h"

#include <stdint.h>
#include <sys/types.h>

#define LAUNCH_WORDS_MAX 20

/* A command line for the launcher, built up before anything is forked. */
struct launch {
	char *argv[LAUNCH_WORDS_MAX + 1];
	int argc;
	int overflow;
	const char *untrusted; /* a component that somebody other than root could replace, or NULL */
	char note[256];        /* what launch_run was told besides "ok" */
};

/* Starts a command line with the verb and the words that every verb takes. */
void launch_prepare(struct launch *launch, const struct node *node, const char *verb, int64_t until);

/* Adds a word NAME=VALUE. */
__attribute__((format(printf, 2, 3))) void launch_add_word(struct launch *launch, const char *format, ...);

/* Runs the launcher, waits for its "ok" until then, and frees the command line. Returns 0, or -1 with a fault. */
int launch_run(struct launch *launch, const struct node *node, int64_t until, struct fault *fault);

/* Starts the launcher without waiting for it, and frees the command line. Returns 0 or -1. */
int launch_detached(struct launch *launch);

/* Time for what jobs left: big directories, VFs, a slow fabric manager. */
#define CLEAN_MS (30 * 60 * 1000)

/* Starts the launcher's verb clean, which removes files of jobs that ended, of that job first. Nobody waits for it.
 * scratch is where they are, or "". */
void clean_start(const struct node *node, const char *job, const char *scratch);

/*
 * Removes, by the launcher, what jobs of the same number left that are not this user's; and, if begun is not 0, what
 * was made before that Unix time, at which the job of the number began. Slurm counts the numbers of jobs anew after
 * slurmctld -c or MaxJobId, and runs no Epilog for a job that it takes for dead with its node (docs/state.md, "When a
 * number comes again"). Returns 0, or -1 with a fault if processes are still in it, or it cannot be removed.
 */
int earlier_end(const struct node *node, const char *job, uid_t uid, int64_t begun, int64_t until, struct fault *fault);

#endif
