/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/channels.h"

#include "common/share.h"
#include "release/release.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define DIRECTORY "/dev/nvidia-caps-imex-channels" /* IMEX_DEV_DIR in Slurm's imex_device.c */

dev_t channels_find(void)
{
	struct statx st;

	/* Slurm mounts channels from 24.05 on (switch/nvidia_imex). */
	if (!is_release_from(24, 5) || statx(AT_FDCWD, DIRECTORY, AT_SYMLINK_NOFOLLOW, 0, &st) < 0 ||
	    !(st.stx_attributes & STATX_ATTR_MOUNT_ROOT)) /* Linux 5.8 */
		return 0;
	return makedev(st.stx_dev_major, st.stx_dev_minor);
}

dev_t channels_show(dev_t node, int mnt, int root, struct fault *fault)
{
	dev_t found = channels_find();

	if (found == 0 || found == node)
		return found;
	struct shared channels = {
		.path = DIRECTORY, .attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, .devices = true};
	share_show(mnt, root, &channels, 1, fault);
	return found;
}
