/* SPDX-License-Identifier: Apache-2.0 */
/* share.h: what of the node is shown in a jail at the same path, once it is known whose step it is. */
#ifndef GOJAIL_SHARE_H
#define GOJAIL_SHARE_H

#include "common/fault.h"

#include "gojail.h"

#include <stdbool.h>
#include <stdint.h>

/* Makes device nodes of the thread's namespace at the same paths of another, where they are not yet; root: see share_show. */
int share_devices(int mnt, int root, const char *const *paths, int count, struct fault *fault);

/* A directory of the thread's namespace that is to be at the same path of another. */
struct shared {
	char path[GOJAIL_PATH_MAX + 64];
	uint64_t attributes; /* MOUNT_ATTR_..., mount_setattr(2) */
	int tree;	     /* of share_show alone */
	bool done;	     /* it is there, and is shown */
};

/*
 * Shows them in directories made for them below a tmpfs of gojail's, in the place of what was shown at that path
 * before; and takes one of them away again. Root is the one of that namespace: what it shows already, as a job's next
 * step finds it, costs no way there. To take the last one away, an umount(2), is what costs most (0.1 ms and more).
 */
int share_show(int mnt, int root, struct shared *list, int count, struct fault *fault);
int share_hide(int mnt, const char *path, struct fault *fault);

/* Removes the directory that the batch script was shown in, and with it what is mounted there. */
void share_remove_script(int root, const char *path);

#endif
