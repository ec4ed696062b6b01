/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h: runs gojail-launcher, and never waits for it past the deadline. */
#ifndef GOJAIL_LAUNCH_H
#define GOJAIL_LAUNCH_H

#include "common/fault.h"
#include "common/node.h"

#include <stdint.h>

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

#endif
