/* SPDX-License-Identifier: Apache-2.0 */
/* zygote.c: the side of the zygote's socket that serves, and the holder. */
#include "zygote.h"

#include "kernel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

int zygote_listen(int dir, struct fault *fault)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket", dir);
	unlinkat(dir, "socket", 0);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1024) == 0)
		return fd;
	fault_set(fault, "cannot make the zygote's socket: %s; is the state directory full or read-only?",
		  strerror(errno));
	close_fd(&fd);
	return -1;
}

static void answer(int talk, const struct fault *fault, int mnt)
{
	struct gojail_reply reply = {.version = GOJAIL_VERSION, .pid = getpid()};
	struct iovec part = {.iov_base = &reply, .iov_len = sizeof(reply)};
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = {.align = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
			       .cmsg_len = CMSG_LEN(2 * sizeof(int))}};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	int fds[2] = {mnt, GOJAIL_STAGE_FD};

	reply.start = process_start(getpid());
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
	struct timeval patience = {.tv_sec = 5}; /* a caller that hangs holds nothing up but this child */
	struct cmsghdr *header;
	ssize_t got;

	setsockopt(talk, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	got = recvmsg(talk, &message, MSG_CMSG_CLOEXEC);
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

static int mount_tmpfs(const char *path, mode_t mode, uint64_t bytes, struct fault *fault)
{
	char options[64], target[32];
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped_fd at = root < 0 ? -1 : k_open_in_root(root, path, 0);

	if (bytes)
		snprintf(options, sizeof(options), "mode=%o,size=%" PRIu64, (unsigned)mode, bytes);
	else
		snprintf(options, sizeof(options), "mode=%o", (unsigned)mode);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", at);
	if (at >= 0 && mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0)
		return 0;
	return fault_set(fault, "cannot mount a private %s in the jail: %s%s", path, strerror(errno),
			 errno == ENOENT ? "; create it with: gojail init" : "");
}

/* The batch script's directory alone in its parent: other jobs' do not show. */
static int make_parent(const char *destination, struct fault *fault)
{
	char parent[GOJAIL_PATH_MAX], *slash;

	snprintf(parent, sizeof(parent), "%s", destination);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return fault_set(fault, "%s is no place for a batch script", destination);
	*slash = '\0';
	if (mount_tmpfs(parent, 0755, 65536, fault) < 0)
		return -1;
	if (mkdir(destination, 0755) < 0)
		return fault_set(fault, "cannot make %s in the jail: %s", destination, strerror(errno));
	return 0;
}

static int attach(const struct gojail_tree *tree, struct fault *fault)
{
	if ((tree->flags & GOJAIL_TREE_ALONE) && make_parent(tree->destination, fault) < 0)
		return -1;
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* Whatever symlinks the jail has there, they end inside it. */
	scoped_fd at = root < 0 ? -1 : k_open_in_root(root, tree->destination,
						      tree->flags & GOJAIL_TREE_EXACT ? RESOLVE_NO_SYMLINKS : 0);

	if (at < 0)
		return fault_set(fault, "the mount target %s is not in the jail: %s; create it there first",
				 tree->destination, strerror(errno));
	if (k_move_mount(tree->fd, at) < 0)
		return fault_set(fault, "cannot mount on %s in the jail: %s%s", tree->destination, strerror(errno),
				 errno == ENOTDIR || errno == EINVAL ?
				 "; a directory goes on a directory, a file on a file" : "");
	return 0;
}

/* A sysfs that shows this network namespace's devices, with what the template has on its own. */
static int renew_sys(struct fault *fault)
{
	static const char *const kept[] = {"/sys/fs/cgroup", "/sys/firmware", "/sys/devices/virtual/powercap"};
	enum { COUNT = sizeof(kept) / sizeof(kept[0]) };
	int trees[COUNT], result = 0;

	/* Two of them hide what is below: one that is there and cannot be kept is a fault. */
	for (int i = 0; i < COUNT; i++) {
		trees[i] = k_open_tree(AT_FDCWD, kept[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
		if (trees[i] < 0 && errno != ENOENT)
			result = fault_set(fault, "cannot keep %s in the jail: %s", kept[i], strerror(errno));
	}
	if (result == 0 && mount("sysfs", "/sys", "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		result = fault_set(fault, "cannot mount the sysfs of the job's network: %s", strerror(errno));
	for (int i = 0; i < COUNT; i++) {
		scoped_fd at = result < 0 || trees[i] < 0 ? -1 : open(kept[i], O_PATH | O_CLOEXEC);

		if (result == 0 && trees[i] >= 0 && (at < 0 || k_move_mount(trees[i], at) < 0))
			result = fault_set(fault, "cannot keep %s in the jail: %s", kept[i], strerror(errno));
		close_fd(&trees[i]);
	}
	return result;
}

static int enter_net(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault)
{
	bool own = request->flags & GOJAIL_REQUEST_NET;

	if (own && unshare(CLONE_NEWNET) < 0)
		return fault_set(fault, "cannot make a network namespace: %s", strerror(errno));
	for (uint32_t i = 0; i < request->ntrees; i++)
		if (trees[i].flags & GOJAIL_TREE_NET) {
			own = true;
			if (setns(trees[i].fd, CLONE_NEWNET) < 0)
				return fault_set(fault, "cannot enter the job's network: %s", strerror(errno));
		}
	if (!own || renew_sys(fault) < 0)
		return own ? -1 : 0;
	/* A place for the job's RDMA devices; what the template has there is the node's. */
	mkdir("/dev/infiniband", 0755);
	if (mount("tmpfs", "/dev/infiniband", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k") < 0)
		return fault_set(fault, "cannot make /dev/infiniband of the job's own: %s", strerror(errno));
	return 0;
}

static int assemble(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault)
{
	if (unshare(CLONE_NEWNS) < 0)
		return fault_set(fault, "cannot make a mount namespace: %s", strerror(errno));
	if (enter_net(request, trees, fault) < 0)
		return -1;
	if ((request->flags & GOJAIL_REQUEST_TMPFS) && mount_tmpfs("/tmp", 01777, request->tmp_bytes, fault) < 0)
		return -1;
	if ((request->flags & GOJAIL_REQUEST_SHM) && mount_tmpfs("/dev/shm", 01777, request->shm_bytes, fault) < 0)
		return -1;
	for (uint32_t i = 0; i < request->ntrees; i++)
		if (!(trees[i].flags & GOJAIL_TREE_NET) && attach(&trees[i], fault) < 0)
			return -1;
	return 0;
}

/* One sandbox: assembled by this process, and there for as long as it lives. */
__attribute__((noreturn)) static void hold(int talk)
{
	static struct gojail_tree trees[GOJAIL_TREES_MAX];
	struct gojail_request request = {0};
	struct fault fault = {0};
	char kept;
	int mnt;

	prctl(PR_SET_NAME, "gojail-holder");
	setsid();
	answer(talk, &fault, -1);
	if (receive(talk, &request, trees, &fault) < 0 || assemble(&request, trees, &fault) < 0) {
		answer(talk, &fault, -1);
		_exit(1);
	}
	mnt = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (mnt < 0)
		fault_set(&fault, "cannot open the sandbox's namespace: %s", strerror(errno));
	answer(talk, &fault, mnt);
	if (mnt < 0 || recv(talk, &kept, 1, 0) != 1)
		_exit(1);
	/* Root in a jail can look at /proc/PID/fd: there is nothing but /dev/null. */
	syscall(SYS_close_range, 3, ~0u, 0);
	for (;;)
		pause();
}

void zygote_serve(int listener)
{
	signal(SIGCHLD, SIG_IGN); /* holders are reaped by the kernel */
	for (;;) {
		int talk = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (talk < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			sleep(1); /* out of descriptors or memory: later, maybe */
			continue;
		}
		if (fork() == 0) {
			close(listener);
			signal(SIGCHLD, SIG_DFL);
			hold(talk);
		}
		close(talk);
	}
}
