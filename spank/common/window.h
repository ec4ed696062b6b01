/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h: moves the calling thread of slurmstepd into another mount namespace
 * for a while, and back.
 */
#ifndef GOJAIL_WINDOW_H
#define GOJAIL_WINDOW_H

#include "common/fault.h"

#include <stdbool.h>
#include <stdint.h>

struct window {
	int home; /* the namespace that the thread came from; once known, for the next time, too */
	bool open;
};

#define WINDOW_CLOSED {.home = -1}

/*
 * The stage of the job: the host's system directories and the jail's data directories, with
 * the job's own /tmp, /dev/shm, /dev/pts and user mounts; or that of the jail, without the
 * latter: enough for an error message to reach the user's file.
 */
int window_open_stage(struct window *window, int stage, struct fault *fault);

/* Back to where the thread came from, whatever its effective uid is; and the same for good. */
int window_leave(struct window *window, struct fault *fault);
int window_close(struct window *window, struct fault *fault);

/* Makes device nodes of the thread's namespace at the same paths of another, where they are not yet; root: see window_show. */
int window_nodes(int mnt, int root, const char *const *paths, int count, struct fault *fault);

/* A detached copy of a mount of that namespace, or -1; the thread comes back. */
int window_clone(int mnt, const char *path, struct fault *fault);

/* A directory of the thread's namespace that is to be at the same path of another. */
struct shown {
	char path[GOJAIL_PATH_MAX + 64];
	uint64_t attributes; /* MOUNT_ATTR_..., mount_setattr(2) */
	int tree;	     /* of window_show alone */
	bool done;	     /* it is there, and is shown */
};

/*
 * Shows them in directories made for them below a tmpfs of gojail's, in the place of what was shown at that path
 * before; and takes one of them away again. Root is the one of that namespace: what it shows already, as a job's next
 * step finds it, costs no way there. To take the last one away, an umount(2), is what costs most (0.1 ms and more).
 */
int window_show(int mnt, int root, struct shown *list, int count, struct fault *fault);
int window_hide(int mnt, const char *path, struct fault *fault);

/* Reports whether another namespace, by its root, shows at path what the thread's namespace has there. */
bool window_has(int root, const char *path);

/*
 * Attaches a detached tree at path of another namespace, in a directory made for it in a tmpfs of gojail's; and
 * removes that directory again, with what is mounted on it.
 */
int window_attach(int mnt, int root, const char *path, int tree, struct fault *fault);
void window_detach(int root, const char *path);

#endif
