/* SPDX-License-Identifier: Apache-2.0 */
/* writable.c: the root of a sandbox, which may have the job's own changes. */
#include "common/clock.h"
#include "common/fd.h"
#include "common/syscalls.h"
#include "launcher/assemble.h"
#include "launcher/remount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Creates the directories upper, with owner and mode of the root, and work in an open directory, unless they exist.
 * upper appears by a rename, so that a killed process never leaves it with mode 0700, in which nobody could enter the
 * root. Returns 0, or -1 with errno.
 */
static int make_layers(int dir, int root)
{
	struct stat st;

	if (fstat(root, &st) < 0 || (mkdirat(dir, "work", 0700) < 0 && errno != EEXIST))
		return -1;
	if (faccessat(dir, "upper", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if ((mkdirat(dir, "new", 0700) < 0 && errno != EEXIST) ||
	    fchownat(dir, "new", st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(dir, "new", st.st_mode & 07777, 0) < 0)
		return -1;
	return renameat(dir, "new", dir, "upper");
}

/*
 * Fails with EBUSY if another overlay has the upper layer: the result of two is undefined (overlayfs.rst). Mounts an
 * overlay that has the upper layer as its lower layer, and its own upper layer in memory. With index=on, which leaves
 * marks in the upper layer of an overlay, the kernel refuses also a lower layer in use (ovl_report_in_use in
 * fs/overlayfs/super.c). The overlay is never attached. Returns 0, or -1 with errno.
 */
static int check_layers_unused(void)
{
	scoped_fd at = open("work", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	scoped_fd memory = k_new_mount("tmpfs", "mode=700,size=64k", 0), probe = -1;
	bool in_use;

	if (at < 0 || memory < 0 || mkdirat(memory, "upper", 0700) < 0 || mkdirat(memory, "work", 0700) < 0 ||
	    k_move_mount(memory, at) < 0)
		return -1;
	probe = k_new_mount("overlay", "index=on,lowerdir=upper,upperdir=work/upper,workdir=work/work",
			    MOUNT_ATTR_RDONLY);
	in_use = probe < 0 && errno == EBUSY; /* the next mount reports any other error */
	if (umount2("work", MNT_DETACH) < 0)
		return -1;
	errno = EBUSY;
	return in_use ? -1 : 0;
}

#define UNUSED_MS 1000 /* mounts of a killed process outlive it for a moment (delayed_mntput in fs/namespace.c) */

/* Waits until no overlay has the upper layer. Returns 0, or -1 with errno, EBUSY at the deadline. */
static int await_layers(void)
{
	int64_t until = clock_ms() + UNUSED_MS;

	while (check_layers_unused() < 0) {
		if (errno != EBUSY || clock_left(until) == 0)
			return -1;
		clock_pause_ms(10);
	}
	return 0;
}

/*
 * Mounts the overlay with its layers in an open mount, which is attached on "/" only until this returns: overlayfs
 * accepts layers only as paths. They are relative, so that no link in the jail's root leads elsewhere. Returns the
 * overlay, or -1 with errno.
 */
static int mount_overlay(const struct gojail_mount *overlay, int layers, int root)
{
	char options[sizeof(overlay->options) + 48];
	int created = -1, saved;
	bool had_upper;

	if (k_move_mount(layers, root) < 0 || fchdir(layers) < 0)
		return -1;
	snprintf(options, sizeof(options), "%s,lowerdir=/,upperdir=upper,workdir=work", overlay->options);
	had_upper = faccessat(layers, "upper", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	if (make_layers(layers, root) == 0 && (!had_upper || await_layers() == 0))
		created = k_new_mount(overlay->type, options, overlay->attributes);
	saved = errno;
	if ((umount2(".", MNT_DETACH) < 0 || fchdir(root) < 0) && created >= 0) {
		saved = errno;
		close_fd(&created);
	}
	errno = saved;
	return created;
}

int mount_root(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault)
{
	const struct gojail_mount *overlay = request_find_mount(request, GOJAIL_MOUNT_ROOT),
				  *upper = request_find_mount(request, GOJAIL_MOUNT_UPPER);
	const struct gojail_tree *root = request_find_tree(request, trees, GOJAIL_TREE_ROOT),
				 *disk = request_find_tree(request, trees, GOJAIL_TREE_UPPER);
	scoped_fd created = -1, memory = -1, old = -1;

	if (root)
		return remount_root(root->fd, request_find_tree(request, trees, GOJAIL_TREE_USER) != NULL, fault);
	if (!overlay)
		return 0;
	old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!disk)
		memory = upper ? k_new_mount(upper->type, upper->options, upper->attributes) : -1;
	if (old >= 0 && (disk || memory >= 0))
		created = mount_overlay(overlay, disk ? disk->fd : memory, old);
	if (created < 0 && errno == EBUSY)
		return fault_set(fault, "writable: processes of an earlier sandbox of this job still run and use its "
					"changes to the jail's root, which one "
					"sandbox at a time can use: end the job's other steps (scancel JOB.STEP), or "
					"start another job");
	if (created < 0)
		return fault_set(fault,
				 "writable: cannot mount an overlay of the jail's root: %s; overlayfs may not accept "
				 "its file system or that of "
				 "scratch, see the kernel's log: ask your administrator",
				 strerror(errno));
	return remount_root(created, false, fault);
}
