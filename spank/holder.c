/* SPDX-License-Identifier: Apache-2.0 */
/* holder.c: a process that assembles one sandbox in a copy of its zygote's template, and holds it. */
#include "holder.h"

#include "kernel.h"
#include "kept.h"
#include "record.h"
#include "stage.h"
#include "userns.h"
#include "zygote.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void answer(int talk, const struct record *self, const struct fault *fault, int mnt, int stage)
{
	struct gojail_reply reply = {.version = GOJAIL_VERSION, .pid = self->pid, .start = self->start};
	struct iovec part = {.iov_base = &reply, .iov_len = sizeof(reply)};
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = {.align = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
			       .cmsg_len = CMSG_LEN(2 * sizeof(int))}};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	int fds[2] = {mnt, stage};

	if (fault->text[0]) {
		reply.failed = 1;
		memcpy(reply.text, fault->text, sizeof(reply.text));
	} else if (mnt >= 0) {
		memcpy(CMSG_DATA(&control.align), fds, sizeof(fds));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	if (sendmsg(talk, &message, MSG_NOSIGNAL) < 0)
		_exit(1); /* nobody waits for this sandbox any more */
}

/* The request, its trees, and their descriptors; 0 or -1 with a fault. */
static int receive(int talk, struct gojail_request *request, struct gojail_tree *trees, struct fault *fault)
{
	struct iovec parts[] = {
		{.iov_base = request, .iov_len = sizeof(*request)},
		{.iov_base = trees, .iov_len = GOJAIL_TREES_MAX * sizeof(*trees)},
	};
	union {
		char bytes[CMSG_SPACE(GOJAIL_TREES_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *header;
	ssize_t got;

	got = recvmsg(talk, &message, MSG_CMSG_CLOEXEC); /* a caller that hangs holds nothing up but this child */
	if (got <= 0)
		_exit(1);
	if (got < (ssize_t)sizeof(*request) || request->version != GOJAIL_VERSION ||
	    request->ntrees > GOJAIL_TREES_MAX ||
	    (size_t)got != sizeof(*request) + request->ntrees * sizeof(*trees))
		return fault_set(fault, "the zygote is of another gojail version; run: gojail reload");
	header = CMSG_FIRSTHDR(&message);
	if (request->ntrees && (!header || header->cmsg_type != SCM_RIGHTS ||
				header->cmsg_len != CMSG_LEN(request->ntrees * sizeof(int))))
		return fault_set(fault, "the zygote was sent a damaged request");
	for (uint32_t i = 0; i < request->ntrees; i++) {
		memcpy(&trees[i].fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
		trees[i].destination[sizeof(trees[i].destination) - 1] = '\0';
	}
	return 0;
}

/* Attaches a new file system at a directory, which it closes. A descriptor of the new one's root. */
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
	return mount_at(root < 0 ? -1 : k_open_in_root(root, path, 0), "tmpfs", options,
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, path, fault);
}

/* Slurm's configuration where slurmd has fetched it, in the template: plan_configless.go. */
#define SLURM_CACHE "/run/gojail/slurm"

/* A place for the batch script's directory, alone in its parent: other jobs' do not show. */
static int open_alone(const char *destination, struct fault *fault)
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
	if (access(SLURM_CACHE, F_OK) == 0 && symlinkat(SLURM_CACHE, made, "conf-cache") < 0)
		return fault_set(fault, "cannot make %s/conf-cache in the jail: %s", parent, strerror(errno));
	/* In what was mounted, wherever the jail's symlinks lead by now. */
	at = mkdirat(made, slash, 0755) < 0 ? -1 : openat(made, slash, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return at < 0 ? fault_set(fault, "cannot make %s in the jail: %s", destination, strerror(errno)) : at;
}

/* Whatever symlinks the jail has there, they end inside it. */
static int open_target(const struct gojail_tree *tree, struct fault *fault)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int at = root < 0 ? -1 : k_open_in_root(root, tree->destination, tree->flags & GOJAIL_TREE_EXACT ? RESOLVE_NO_SYMLINKS : 0);

	return at < 0 ? fault_set(fault, "the mount target %s is not in the jail: %s; create it there first",
				  tree->destination, strerror(errno)) : at;
}

static int attach(const struct gojail_tree *tree, struct fault *fault)
{
	scoped_fd at = tree->flags & GOJAIL_TREE_ALONE ? open_alone(tree->destination, fault) : open_target(tree, fault);

	if (at < 0)
		return -1;
	if (k_move_mount(tree->fd, at) < 0)
		return fault_set(fault, "cannot mount on %s in the jail: %s%s", tree->destination, strerror(errno),
				 errno == ENOTDIR || errno == EINVAL ?
				 "; a directory goes on a directory, a file on a file" : "");
	return 0;
}

/* The namespace of that kind: the job's, where it is among the trees, else a new one. */
static int enter(const struct gojail_request *request, const struct gojail_tree *trees, uint32_t bit,
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
	static const struct renewal sys = {"/sys", "sysfs",
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
	if (!own || kept_renew(&sys, fault) < 0)
		return own ? -1 : 0;
	/* A place for the job's RDMA devices; what the template has there is the node's. */
	scoped_fd dev = kept_open("/dev", TMPFS_MAGIC, fault);
	if (dev < 0)
		return -1;
	mkdirat(dev, "infiniband", 0755);
	scoped_fd made = mount_at(openat(dev, "infiniband", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), "tmpfs",
				  "mode=755,size=64k", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, "/dev/infiniband", fault);
	return made < 0 ? -1 : 0;
}

/* Each step puts there what Slurm made for the job: see cgroups.h. */
static int mount_cgroups(struct fault *fault)
{
	scoped_fd sys = kept_open("/sys", SYSFS_MAGIC, fault);
	scoped_fd made = sys < 0 ? -1 : mount_at(openat(sys, "fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC), "tmpfs", "mode=755,size=64k",
						 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, "/sys/fs/cgroup", fault);

	return made < 0 ? -1 : 0;
}

/* What shows the job's own processes, devices, terminals and message queues. */
static int mount_own(const struct gojail_request *request, struct fault *fault)
{
	const uint64_t plain = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	const struct renewal proc = {"/proc", "proc", plain, request->flags & GOJAIL_REQUEST_HIDEPID ? "hidepid=2" : NULL,
				     PROC_SUPER_MAGIC};
	static const struct renewal dev = {"/dev", "tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, "mode=755,size=1m", TMPFS_MAGIC};

	if ((request->flags & GOJAIL_REQUEST_PID) && kept_renew(&proc, fault) < 0)
		return -1;
	if ((request->flags & GOJAIL_REQUEST_DEV) && kept_renew(&dev, fault) < 0)
		return -1;
	if ((request->flags & GOJAIL_REQUEST_CGROUP) && mount_cgroups(fault) < 0)
		return -1;
	scoped_fd at = kept_open("/dev", TMPFS_MAGIC, fault);
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

static int assemble(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault)
{
	if (unshare(CLONE_NEWNS) < 0)
		return fault_set(fault, "cannot make a mount namespace: %s", strerror(errno));
	for (uint32_t i = 0; i < request->ntrees; i++)
		if ((trees[i].flags & GOJAIL_TREE_ROOT) && kept_root(trees[i].fd, fault) < 0)
			return -1;
	if (enter(request, trees, GOJAIL_REQUEST_IPC, "ipc", CLONE_NEWIPC, fault) < 0 ||
	    enter(request, trees, GOJAIL_REQUEST_UTS, "uts", CLONE_NEWUTS, fault) < 0 ||
	    enter_net(request, trees, fault) < 0 || mount_own(request, fault) < 0)
		return -1;
	scoped_fd tmp = request->flags & GOJAIL_REQUEST_TMPFS ? mount_tmpfs("/tmp", 01777, request->tmp_bytes, fault) : -1;
	scoped_fd shm = request->flags & GOJAIL_REQUEST_SHM ? mount_tmpfs("/dev/shm", 01777, request->shm_bytes, fault) : -1;
	if (fault->text[0])
		return -1;
	for (uint32_t i = 0; i < request->ntrees; i++)
		if (!(trees[i].flags & (GOJAIL_TREE_NET | GOJAIL_TREE_NS | GOJAIL_TREE_USER | GOJAIL_TREE_ROOT)) && attach(&trees[i], fault) < 0)
			return -1;
	return 0;
}

/*
 * Only the children of a process change their PID namespace: goes on as one, of the
 * zygote's, which reaps it. In a new namespace it is process 1, and what the job
 * leaves behind becomes its child: that is reaped without a thought (SIG_IGN).
 */
static int enter_pid(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault)
{
	pid_t child;

	if (!(request->flags & GOJAIL_REQUEST_PID))
		return 0;
	if (enter(request, trees, GOJAIL_REQUEST_PID, "pid", CLONE_NEWPID, fault) < 0)
		return -1;
	child = (pid_t)syscall(SYS_clone, CLONE_PARENT, 0, 0, 0, 0);
	if (child < 0)
		return fault_set(fault, "cannot fork into the job's PID namespace: %s", strerror(errno));
	if (child > 0)
		_exit(0);
	setsid();
	signal(SIGCHLD, SIG_IGN);
	return 0;
}

/* The user namespace for the tasks: among the trees, or a new one where uid 0 is the user and nobody else is. */
static int find_user(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault)
{
	struct idmap user = {0, request->uid, 1}, group = {0, request->gid, 1};

	for (uint32_t i = 0; i < request->ntrees; i++)
		if (trees[i].flags & GOJAIL_TREE_USER)
			return trees[i].fd;
	return userns_make(ZYGOTE_PROC_FD, request->uid, &user, &group, false, fault);
}

/* The descriptor with a number that means nothing. */
static int above(int fd)
{
	int other = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, GOJAIL_USER_FD + 1);

	close_fd(&fd);
	return other;
}

/* One sandbox: assembled by this process, and there for as long as it lives. */
void holder_run(int talk)
{
	static struct gojail_tree trees[GOJAIL_TREES_MAX];
	struct gojail_request request = {0};
	struct fault fault = {0};
	struct record self = proc_self(ZYGOTE_PROC_FD);
	char one;
	int mnt, stage, user = -1;

	prctl(PR_SET_NAME, "gojail-holder");
	setsid();
	answer(talk, &self, &fault, -1, -1);
	if (receive(talk, &request, trees, &fault) < 0 || enter_pid(&request, trees, &fault) < 0) {
		answer(talk, &self, &fault, -1, -1);
		_exit(1);
	}
	self = proc_self(ZYGOTE_PROC_FD);
	if (assemble(&request, trees, &fault) < 0 ||
	    ((request.flags & GOJAIL_REQUEST_ROOT) && (user = find_user(&request, trees, &fault)) < 0)) {
		answer(talk, &self, &fault, -1, -1);
		_exit(1);
	}
	mnt = above(openat(ZYGOTE_PROC_FD, "self/ns/mnt", O_RDONLY | O_CLOEXEC));
	stage = above(stage_make(ZYGOTE_PROC_FD, trees, request.ntrees, &fault));
	user = above(user);
	/* These numbers are theirs before anybody knows of them. */
	if (mnt < 0 || stage < 0 || dup3(stage, GOJAIL_STAGE_FD, O_CLOEXEC) < 0 || (user >= 0 && dup3(user, GOJAIL_USER_FD, O_CLOEXEC) < 0)) {
		fault_set(&fault, "cannot keep the sandbox's namespaces: %s", strerror(errno));
		close_fd(&mnt);
	}
	answer(talk, &self, &fault, mnt, stage);
	if (mnt < 0 || recv(talk, &one, 1, 0) != 1)
		_exit(1);
	/* Root in a jail sees the numbers in /proc/PID/fd; to open them takes ptrace's rights over us (proc_pid_fd(5)). */
	prctl(PR_SET_DUMPABLE, 0);
	syscall(SYS_close_range, user >= 0 ? GOJAIL_USER_FD + 1 : GOJAIL_USER_FD, ~0u, 0);
	for (;;)
		pause();
}
