/* SPDX-License-Identifier: Apache-2.0 */
/* share.h: shows files of the node, such as the GPUs of a step, at the same path of a jail, once a step needs them. */
#ifndef GOJAIL_SHARE_H
#define GOJAIL_SHARE_H

#include "common/fault.h"
#include "common/node.h"
#include "common/site.h"
#include "gojail.h"

#include <stdbool.h>
#include <stdint.h>

/* Creates those device nodes that a jail lacks, as the thread's namespace has them; root as for share_show. Returns 0,
 * or -1 with a fault. */
int share_devices(int mnt, int root, const char *const *paths, int count, struct fault *fault);

/* A directory of the thread's namespace for the same path of a jail. */
struct shared {
	char path[GOJAIL_PATH_MAX + 64];
	uint64_t attributes; /* MOUNT_ATTR_..., mount_setattr(2) */
	bool devices;        /* it has devices, and another directory with the same ones is as good */
	int tree;            /* used by share_show alone */
	bool done;           /* the directory exists and is shown */
};

/*
 * Shows the directories of the list in the jail with that mount namespace and root, in directories created for them
 * below a tmpfs of gojail's, in place of what was shown there before. What root shows already, as the next step of a
 * job finds it, costs no visit of the namespace. Returns 0, or -1 with a fault.
 */
int share_show(int mnt, int root, struct shared *list, int count, struct fault *fault);

/*
 * Takes such a directory out of the jail again, which is an umount(2): 0.1 ms and more. parent is the directory in the
 * jail that has it: no path is looked up from the jail's root, which may be on storage that has become silent. Returns
 * 0, or -1 with a fault.
 */
int share_hide(int mnt, int parent, const char *path, struct fault *fault);

/* Removes the directory that the batch script was shown in, and with it what is mounted there; parent as for
 * share_hide. */
void share_remove_script(int parent, const char *path);

/* Shows the GPUs of the list, "0,2" or "4-7", in the sandbox, beside those of the job's other steps. Returns 0, or -1
 * with a fault. */
int show_gpus(const struct jail *jail, const char *list, int mnt, int root, struct fault *fault);

/*
 * Notes for `gojail metrics` and for the end of the job which GPUs a step of the job got, in a line JAIL LIST, once for
 * each. What fails here fails no step.
 */
void note_gpus(const struct node *node, const char *job, const struct jail *jail, const char *list);

#endif
