/* SPDX-License-Identifier: Apache-2.0 */
#include "common/visit.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int visit_enter(int mnt)
{
	/*
	 * setns(2) refuses CLONE_NEWNS to a thread that shares its root and cwd. Threads that the caller makes later share them
	 * again, hence each time.
	 */
	return unshare(CLONE_FS) < 0 || setns(mnt, CLONE_NEWNS) < 0 ? -1 : 0;
}

/*
 * Reports whether a directory is the thread's root: the same directory of the same mount. The subvolumes of a btrfs differ in the
 * device alone.
 */
static bool is_root(int dir)
{
	struct statx there = {0}, root = {0};

	return statx(dir, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &there) == 0 &&
	       statx(AT_FDCWD, "/", 0, STATX_INO | STATX_MNT_ID, &root) == 0 && (there.stx_mask & root.stx_mask & STATX_MNT_ID) &&
	       there.stx_mnt_id == root.stx_mnt_id && there.stx_ino == root.stx_ino &&
	       there.stx_dev_major == root.stx_dev_major && there.stx_dev_minor == root.stx_dev_minor;
}

/*
 * Opens the thread's mount namespace. setns(2) goes to the root of a namespace, which is not the thread's in a chroot, and the
 * stage would be made from it. Returns 0, or -1 with a fault.
 */
static int find_home(struct visit *visit, struct fault *fault)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	visit->home = open_own_proc("ns/mnt");
	if (root < 0 || visit->home < 0 || visit_enter(visit->home) < 0)
		return fault_set(fault, "cannot open slurmstepd's own namespace: %s", strerror(errno));
	if (is_root(root))
		return 0;
	if (fchdir(root) < 0 || chroot(".") < 0)
		fault_set(fault, "cannot return to the chroot of slurmd: %s", strerror(errno));
	return fault_set(fault, "slurmd is in a chroot, where there are no jails; ask your administrator to start it without chroot(8)");
}

int visit_begin(struct visit *visit, struct fault *fault)
{
	visit->away = visit->home >= 0 || find_home(visit, fault) == 0;
	if (!visit->away)
		close_fd(&visit->home);
	return visit->away ? 0 : -1;
}

int visit_leave(struct visit *visit, struct fault *fault)
{
	uid_t user = geteuid();
	int result = 0;

	if (!visit->away)
		return 0;
	visit->away = false;
	if (k_seteuid(0) < 0 || visit_enter(visit->home) < 0)
		result = fault_set(fault, "cannot leave the jail's namespace: %s", strerror(errno));
	if (k_seteuid(user) < 0)
		result = fault_set(fault, "cannot become user %u again: %s", (unsigned)user, strerror(errno));
	return result;
}

int visit_end(struct visit *visit, struct fault *fault)
{
	int result = visit_leave(visit, fault);

	close_fd(&visit->home);
	return result;
}

int visit_clone_mount(int mnt, const char *path, struct fault *fault)
{
	struct visit visit = VISIT_NONE;
	int tree = -1;

	if (visit_begin(&visit, fault) < 0)
		return -1;
	if (visit_enter(mnt) == 0)
		tree = path ? clone_mount_at(path) : clone_root();
	if (visit_end(&visit, fault) < 0)
		close_fd(&tree);
	return tree;
}
