/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/stage_window.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/syscalls.h"
#include "release/release.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Moves the thread into a mount namespace. Returns 0, or -1 with errno: the thread is where it was then. */
static int enter_namespace(int mnt)
{
	/*
	 * setns(2) refuses CLONE_NEWNS to a thread that shares its root and cwd. Threads that the caller makes later
	 * share them again, hence each time.
	 */
	return unshare(CLONE_FS) < 0 || setns(mnt, CLONE_NEWNS) < 0 ? -1 : 0;
}

/*
 * Reports whether a directory is the thread's root: the same directory of the same mount. The subvolumes of a btrfs
 * differ in the device alone.
 */
static bool is_root(int dir)
{
	struct statx there = {0}, root = {0};

	return statx(dir, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &there) == 0 &&
	       statx(AT_FDCWD, "/", 0, STATX_INO | STATX_MNT_ID, &root) == 0 &&
	       (there.stx_mask & root.stx_mask & STATX_MNT_ID) && there.stx_mnt_id == root.stx_mnt_id &&
	       there.stx_ino == root.stx_ino && there.stx_dev_major == root.stx_dev_major &&
	       there.stx_dev_minor == root.stx_dev_minor;
}

/*
 * Opens the thread's mount namespace. setns(2) goes to the root of a namespace, which is not the thread's in a chroot,
 * and the stage would be made from it. Returns 0, or -1 with a fault.
 */
static int find_home(struct stage_window *window, struct fault *fault)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	window->home = open_own_proc("ns/mnt");
	if (root < 0 || window->home < 0 || enter_namespace(window->home) < 0)
		return fault_set(fault, "cannot open slurmstepd's own namespace: %s", strerror(errno));
	if (is_root(root))
		return 0;
	if (fchdir(root) < 0 || chroot(".") < 0) {
		/* Root does not go on with other files than those that slurmd was started with. */
		slurm_error("gojail: cannot return to the chroot of slurmd: %s", strerror(errno));
		_exit(1);
	}
	return fault_set(fault, "slurmd is in a chroot, where there are no jails; ask your administrator to start it "
				"without chroot(8)");
}

int stage_window_open(struct stage_window *window, int stage, struct fault *fault)
{
	const bool shares_root = window->home >= 0; /* else find_home has just seen to it that the thread does not */

	if (window->home < 0 && find_home(window, fault) < 0) {
		close_fd(&window->home);
		return -1;
	}
	window->open = (shares_root ? enter_namespace(stage) : setns(stage, CLONE_NEWNS)) == 0;
	return window->open ? 0 : fault_set(fault, "cannot enter the stage of the jail: %s", strerror(errno));
}

bool stage_window_is_elsewhere(const struct stage_window *window)
{
	return is_release_from(24, 5) && window->process && getpid() != window->process;
}

int stage_window_leave(struct stage_window *window, struct fault *fault)
{
	if (!window->open)
		return 0;
	window->open = enter_namespace(window->home) < 0;
	return window->open ? fault_set(fault, "cannot leave the stage of the jail: %s", strerror(errno)) : 0;
}
