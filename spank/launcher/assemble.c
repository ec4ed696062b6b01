/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/assemble.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/syscalls.h"
#include "launcher/accounts.h"
#include "launcher/remount.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Attaches a new file system to a directory, and closes the directory. Returns the root of the new one, or -1 with a fault. */
static int mount_at(int at, const char *type, const char *options, uint64_t attributes, const char *path, struct fault *fault)
{
	int made = at < 0 ? -1 : k_new_mount(type, options, attributes);

	if (made < 0 || k_move_mount(made, at) < 0) {
		fault_set(fault, "cannot mount a private %s in the jail: %s%s", path, strerror(errno),
			  errno == ENOENT ? "; create it with: gojail init" : "");
		close_fd(&made);
	}
	close_fd(&at);
	return made;
}

static int mount_tmpfs(const char *path, mode_t mode, uint64_t bytes, struct fault *fault)
{
	char options[64];
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	snprintf(options, sizeof(options), "mode=%o", (unsigned)mode);
	if (bytes)
		snprintf(options, sizeof(options), "mode=%o,size=%" PRIu64, (unsigned)mode, bytes);
	return mount_at(root < 0 ? -1 : open_in_root(root, path, 0), "tmpfs", options,
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, path, fault);
}

/*
 * Creates a mount point for the batch script's directory, alone in its parent, so that other jobs' do not show. Returns -1 with a
 * fault.
 */
static int make_lone_target(const char *destination, struct fault *fault)
{
	char parent[GOJAIL_PATH_MAX], *slash;
	int at;

	snprintf(parent, sizeof(parent), "%s", destination);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return fault_set(fault, "%s is no place for a batch script", destination);
	*slash++ = '\0';
	scoped_fd made = mount_tmpfs(parent, 0755, 65536, fault);
	if (made < 0)
		return -1;
	if (access(GOJAIL_SLURM_CACHE, F_OK) == 0 && symlinkat(GOJAIL_SLURM_CACHE, made, GOJAIL_SLURM_CACHE_LINK) < 0)
		return fault_set(fault, "cannot make %s/" GOJAIL_SLURM_CACHE_LINK " in the jail: %s", parent, strerror(errno));
	/* In what was mounted, wherever the jail's symlinks lead by now. */
	at = mkdirat(made, slash, 0755) < 0 ? -1 : openat(made, slash, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return at < 0 ? fault_set(fault, "cannot make %s in the jail: %s", destination, strerror(errno)) : at;
}

/* Opens the mount target of a tree; whatever symbolic links the jail has, they end in it. Returns -1 with a fault. */
static int open_target(const struct gojail_tree *tree, struct fault *fault)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int at = root < 0 ? -1 : open_in_root(root, tree->destination, tree->flags & GOJAIL_TREE_EXACT ? RESOLVE_NO_SYMLINKS : 0);

	return at < 0 ? fault_set(fault, "the mount target %s is not in the jail: %s; create it there first",
				  tree->destination, strerror(errno)) : at;
}

static int attach_tree(const struct gojail_tree *tree, struct fault *fault)
{
	scoped_fd at = tree->flags & GOJAIL_TREE_ALONE ? make_lone_target(tree->destination, fault) : open_target(tree, fault);

	if (at < 0)
		return -1;
	if (k_move_mount(tree->fd, at) < 0)
		return fault_set(fault, "cannot mount on %s in the jail: %s%s", tree->destination, strerror(errno),
				 errno == ENOTDIR || errno == EINVAL ?
				 "; a directory goes on a directory, a file on a file" : "");
	return 0;
}

int enter_or_unshare(const struct gojail_request *request, const struct gojail_tree *trees, uint32_t bit,
		     const char *name, int flag, struct fault *fault)
{
	if (!(request->flags & bit))
		return 0;
	for (uint32_t i = 0; i < request->ntrees; i++)
		if ((trees[i].flags & GOJAIL_TREE_NS) && strcmp(trees[i].destination, name) == 0) {
			if (setns(trees[i].fd, flag) == 0)
				return 0;
			return fault_set(fault, "cannot enter the job's %s namespace: %s", name, strerror(errno));
		}
	return unshare(flag) == 0 ? 0 : fault_set(fault, "cannot make a %s namespace: %s", name, strerror(errno));
}

static int enter_net(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault)
{
	static const struct remount sys = {"/sys", "sysfs",
					   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
					   NULL, SYSFS_MAGIC};
	bool own = request->flags & GOJAIL_REQUEST_NET;

	if (own && unshare(CLONE_NEWNET) < 0)
		return fault_set(fault, "cannot make a network namespace: %s", strerror(errno));
	for (uint32_t i = 0; i < request->ntrees; i++)
		if (trees[i].flags & GOJAIL_TREE_NET) {
			own = true;
			if (setns(trees[i].fd, CLONE_NEWNET) < 0)
				return fault_set(fault, "cannot enter the job's network: %s", strerror(errno));
		}
	if (!own || remount_over(&sys, fault) < 0)
		return own ? -1 : 0;
	/* A place for the job's RDMA devices; what the template has there is the node's. */
	scoped_fd dev = open_template_mount("/dev", TMPFS_MAGIC, fault);
	if (dev < 0)
		return -1;
	mkdirat(dev, "infiniband", 0755);
	scoped_fd made = mount_at(openat(dev, "infiniband", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), "tmpfs",
				  "mode=755,size=64k", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, "/dev/infiniband", fault);
	return made < 0 ? -1 : 0;
}

/* Mounts a tmpfs for the job's cgroups, which each step shows there (plugin/cgroups.c). */
static int mount_cgroups(struct fault *fault)
{
	scoped_fd sys = open_template_mount("/sys", SYSFS_MAGIC, fault);
	scoped_fd made = sys < 0 ? -1 : mount_at(openat(sys, "fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC), "tmpfs", "mode=755,size=64k",
						 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, "/sys/fs/cgroup", fault);

	return made < 0 ? -1 : 0;
}

/* Mounts what shows the job's own processes, devices, terminals and message queues. Returns 0, or -1 with a fault. */
static int mount_job_filesystems(const struct gojail_request *request, struct fault *fault)
{
	const uint64_t plain = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	const struct remount proc = {"/proc", "proc", plain, request->flags & GOJAIL_REQUEST_HIDEPID ? "hidepid=2" : NULL,
				     PROC_SUPER_MAGIC};
	static const struct remount dev = {"/dev", "tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, "mode=755,size=1m", TMPFS_MAGIC};

	if ((request->flags & GOJAIL_REQUEST_PID) && remount_over(&proc, fault) < 0)
		return -1;
	if ((request->flags & GOJAIL_REQUEST_DEV) && remount_over(&dev, fault) < 0)
		return -1;
	if ((request->flags & GOJAIL_REQUEST_CGROUP) && mount_cgroups(fault) < 0)
		return -1;
	scoped_fd at = open_template_mount("/dev", TMPFS_MAGIC, fault);
	if (at < 0)
		return -1;
	scoped_fd pts = mount_at(openat(at, "pts", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), "devpts", "ptmxmode=666,mode=620,gid=5",
				 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, "/dev/pts", fault);
	if (pts < 0 || !(request->flags & GOJAIL_REQUEST_IPC))
		return pts < 0 ? -1 : 0;
	scoped_fd made = mount_at(openat(at, "mqueue", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), "mqueue", NULL, plain,
				  "/dev/mqueue", fault);
	return made < 0 ? -1 : 0;
}

/*
 * Finds the owner, on the node, of the files of the jail's root: root, or with --jail-root=range the ids in the tree's
 * destination.
 */
static int find_root_ids(const struct gojail_request *request, const struct gojail_tree *trees, unsigned *uid, unsigned *gid, struct fault *fault)
{
	*uid = *gid = 0;
	for (uint32_t i = 0; i < request->ntrees; i++)
		if ((trees[i].flags & GOJAIL_TREE_USER) && sscanf(trees[i].destination, "%u %u", uid, gid) != 2)
			return fault_set(fault, "the zygote was sent a damaged request");
	return 0;
}

/*
 * Mounts the job's own /run, with Debian's /run/lock. What programs leave there ends with the sandbox: no other job's root is to
 * find it.
 */
static int mount_run(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault)
{
	char options[96];
	const struct remount run = {"/run", "tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, options, TMPFS_MAGIC};
	unsigned uid, gid;

	if (find_root_ids(request, trees, &uid, &gid, fault) < 0)
		return -1;
	bool range = uid != 0;
	snprintf(options, sizeof(options), GOJAIL_RUN_OPTIONS ",uid=%u,gid=%u", uid, gid);
	if (remount_over(&run, fault) < 0)
		return -1;
	scoped_fd made = open_template_mount("/run", TMPFS_MAGIC, fault);
	if (made < 0)
		return -1;
	/* One that is there is a mount of the site's. */
	if (mkdirat(made, "lock", 0700) < 0 ? errno != EEXIST :
	    fchownat(made, "lock", uid, gid, AT_SYMLINK_NOFOLLOW) < 0 || fchmodat(made, "lock", 01777, 0) < 0)
		return fault_set(fault, "cannot make /run/lock in the jail: %s", strerror(errno));
	return range ? 0 : mount_accounts(made, fault);
}

int begin_assembly(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault)
{
	if (unshare(CLONE_NEWNS) < 0)
		return fault_set(fault, "cannot make a mount namespace: %s", strerror(errno));
	for (uint32_t i = 0; i < request->ntrees; i++)
		if ((trees[i].flags & GOJAIL_TREE_ROOT) && remount_root(trees[i].fd, fault) < 0)
			return -1;
	if (enter_or_unshare(request, trees, GOJAIL_REQUEST_IPC, "ipc", CLONE_NEWIPC, fault) < 0 ||
	    enter_net(request, trees, fault) < 0 || mount_run(request, trees, fault) < 0)
		return -1;
	return mount_job_filesystems(request, fault);
}

int check_begun(const struct gojail_request *request, struct fault *fault)
{
	static const struct {
		uint32_t bit;
		const char *path;
		long magic;
	} mounted[] = {{GOJAIL_REQUEST_PID, "/proc", PROC_SUPER_MAGIC}, {GOJAIL_REQUEST_CGROUP, "/sys", SYSFS_MAGIC}, {~0u, "/dev", TMPFS_MAGIC}};

	for (size_t i = 0; i < sizeof(mounted) / sizeof(mounted[0]); i++) {
		scoped_fd at = request->flags & mounted[i].bit ? open_template_mount(mounted[i].path, mounted[i].magic, fault) : -1;

		if (at < 0 && fault->text[0])
			return -1;
	}
	scoped_fd run = open_template_mount("/run", TMPFS_MAGIC, fault);
	return run < 0 ? -1 : mount_accounts(run, fault);
}

int finish_assembly(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault)
{
	if (enter_or_unshare(request, trees, GOJAIL_REQUEST_UTS, "uts", CLONE_NEWUTS, fault) < 0)
		return -1;
	scoped_fd tmp = request->flags & GOJAIL_REQUEST_TMPFS ? mount_tmpfs("/tmp", 01777, request->tmp_bytes, fault) : -1;
	scoped_fd shm = request->flags & GOJAIL_REQUEST_SHM ? mount_tmpfs("/dev/shm", 01777, request->shm_bytes, fault) : -1;
	if (fault->text[0])
		return -1;
	for (uint32_t i = 0; i < request->ntrees; i++)
		if (!(trees[i].flags & ASSEMBLE_NO_MOUNT) && attach_tree(&trees[i], fault) < 0)
			return -1;
	return 0;
}
