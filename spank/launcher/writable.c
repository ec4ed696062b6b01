/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/writable.h"

#include "common/fd.h"
#include "common/syscalls.h"
#include "launcher/remount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct gojail_mount *find_mount(const struct gojail_request *request, uint32_t how)
{
	for (uint32_t i = 0; i < request->nmounts; i++)
		if (request->mounts[i].how & how)
			return &request->mounts[i];
	return NULL;
}

static const struct gojail_tree *find_tree(const struct gojail_request *request, const struct gojail_tree *trees, uint32_t flag)
{
	for (uint32_t i = 0; i < request->ntrees; i++)
		if (trees[i].flags & flag)
			return &trees[i];
	return NULL;
}

/* Creates the directories upper, which looks like the root, and work in an open directory; those that exist stay. Returns 0, or -1. */
static int make_layers(int dir, int root)
{
	struct stat st;

	if (fstat(root, &st) < 0 || (mkdirat(dir, "work", 0700) < 0 && errno != EEXIST))
		return -1;
	if (mkdirat(dir, "upper", 0700) < 0)
		return errno == EEXIST ? 0 : -1;
	return fchownat(dir, "upper", st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 || fchmodat(dir, "upper", st.st_mode & 07777, 0) < 0 ? -1 : 0;
}

/*
 * Mounts the overlay with its layers in an open mount, which is attached on "/" for that moment only: overlayfs takes layers by
 * their paths, which are relative here, so that no link in the jail's root leads elsewhere. Returns the overlay, or -1 with errno.
 */
static int mount_overlay(const struct gojail_mount *overlay, int layers, int root)
{
	char options[sizeof(overlay->options) + 48];
	int made = -1, saved;

	if (k_move_mount(layers, root) < 0 || fchdir(layers) < 0)
		return -1;
	snprintf(options, sizeof(options), "%s,lowerdir=/,upperdir=upper,workdir=work", overlay->options);
	if (make_layers(layers, root) == 0)
		made = k_new_mount(overlay->type, options, overlay->attributes);
	saved = errno;
	if ((umount2(".", MNT_DETACH) < 0 || fchdir(root) < 0) && made >= 0) {
		saved = errno;
		close_fd(&made);
	}
	errno = saved;
	return made;
}

int mount_root(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault)
{
	const struct gojail_mount *overlay = find_mount(request, GOJAIL_MOUNT_ROOT), *upper = find_mount(request, GOJAIL_MOUNT_UPPER);
	const struct gojail_tree *root = find_tree(request, trees, GOJAIL_TREE_ROOT), *disk = find_tree(request, trees, GOJAIL_TREE_UPPER);
	scoped_fd made = -1, memory = -1, old = -1;

	if (root)
		return remount_root(root->fd, find_tree(request, trees, GOJAIL_TREE_USER) != NULL, fault);
	if (!overlay)
		return 0;
	old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!disk)
		memory = upper ? k_new_mount(upper->type, upper->options, upper->attributes) : -1;
	if (old >= 0 && (disk || memory >= 0))
		made = mount_overlay(overlay, disk ? disk->fd : memory, old);
	if (made < 0)
		return fault_set(fault, "writable: cannot mount an overlay of the jail's root: %s; overlayfs may not accept its file system or that of "
					"scratch, which the kernel's log tells: ask your administrator",
				 strerror(errno));
	return remount_root(made, false, fault);
}
