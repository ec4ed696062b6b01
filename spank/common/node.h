/* SPDX-License-Identifier: Apache-2.0 */
/* node.h: where gojail is installed and configured on this node, and the namespaces of the slurmd there. */
#ifndef GOJAIL_NODE_H
#define GOJAIL_NODE_H

#include "common/fault.h"

#include <stddef.h>

/* Reported by a task in which gojail's own descriptors are closed. */
#define NODE_CLOSED                                                                                                    \
	"an earlier plugin of plugstack.conf has closed descriptors of gojail's; ask your administrator to write its " \
	"line after gojail's"

/* Reported by a hook when Slurm skipped an earlier hook of the same step. */
#define NODE_UNASKED "an earlier plugin of plugstack.conf failed, and Slurm did not call gojail; ask your administrator"

struct node {
	char libdir[GOJAIL_PATH_MAX]; /* the directory that the plugin was loaded from */
	char config[GOJAIL_PATH_MAX];
	char state[GOJAIL_PATH_MAX];
	char name[GOJAIL_NAME_MAX + 1]; /* as slurmd calls it; may be empty */
};

/* Stores the path of the program that this process executes, with a slash in it. Returns 0, or -1 with errno. */
int node_find_program(char *path, size_t size);

/*
 * Reads the arguments of plugstack.conf: required /PATH/spank_gojail.so [config=FILE] [state=DIR], where %n stands for
 * the node's name. A name or libdir that the caller has set stays: neither is looked up then. Returns 0, or -1 with a
 * fault.
 */
int node_find(struct node *node, int argc, char **argv, struct fault *fault);

/* Creates the state directory if it is missing. Returns 0, or -1 with a fault if others than root can write to it.
 */
int node_check_state(const struct node *node, struct fault *fault);

/*
 * Writes the record of the calling process, which is slurmd, and of its mount namespace. Releases up to 24.05 go into
 * the background afterwards, as another process. Returns 0, or -1 with a fault.
 */
int slurmd_note(const struct node *node, struct fault *fault);

/*
 * Moves this process, which has one thread, to the mount, network, IPC, UTS and cgroup namespaces of slurmd. If no
 * slurmd with gojail runs on this node, it stays with its mounts and, if these are those of process 1, enters the
 * other namespaces of that. Returns 0, or -1 with a fault if slurmd has ended, and this may be a job's namespace.
 */
int slurmd_enter_namespaces(const struct node *node, struct fault *fault);

#endif
