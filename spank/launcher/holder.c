/* SPDX-License-Identifier: Apache-2.0 */
/* holder.c: the process that assembles a sandbox in a copy of its zygote's template, and holds it. */
#include "launcher/holder.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/record.h"
#include "common/syscalls.h"
#include "launcher/assemble.h"
#include "launcher/descriptors.h"
#include "launcher/first_pid.h"
#include "launcher/job_stage.h"
#include "launcher/userns.h"
#include "launcher/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void send_reply(int talk, const struct record *self, const struct fault *fault)
{
	struct gojail_reply reply = {.version = GOJAIL_VERSION, .pid = self->pid, .start = self->start};

	if (fault->text[0]) {
		reply.failed = 1;
		memcpy(reply.text, fault->text, sizeof(reply.text));
	}
	if (send(talk, &reply, sizeof(reply), MSG_NOSIGNAL) < 0)
		_exit(1); /* nobody waits for this sandbox any more */
}

/* Reports whether so many bytes are a whole request. */
static bool is_whole(ssize_t got, const struct gojail_request *request)
{
	return got >= (ssize_t)sizeof(*request) && request->version == GOJAIL_VERSION &&
	       request->ntrees <= GOJAIL_TREES_MAX && request->nmounts <= GOJAIL_JOB_MOUNTS_MAX &&
	       (size_t)got == sizeof(*request) + request->ntrees * sizeof(struct gojail_tree);
}

/* Ends the strings of the request's mounts. Returns 0, or -1 if a mount lacks its path. */
static int check_mounts(struct gojail_request *request)
{
	for (uint32_t i = 0; i < request->nmounts; i++) {
		struct gojail_mount *mount = &request->mounts[i];

		mount->type[sizeof(mount->type) - 1] = '\0';
		mount->options[sizeof(mount->options) - 1] = '\0';
		mount->destination[sizeof(mount->destination) - 1] = '\0';
		if (mount->destination[0] != '/' && mount->how != GOJAIL_MOUNT_SCRIPT)
			return -1;
	}
	return 0;
}

/* Receives the request, its trees, and their descriptors. Returns 0, or -1 with a fault. */
static int receive_request(int talk, struct gojail_request *request, struct gojail_tree *trees, struct fault *fault)
{
	struct iovec parts[] = {
		{.iov_base = request, .iov_len = sizeof(*request)},
		{.iov_base = trees, .iov_len = GOJAIL_TREES_MAX * sizeof(*trees)},
	};
	union {
		char bytes[CMSG_SPACE(GOJAIL_TREES_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr message = {
		.msg_iov = parts, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header;
	ssize_t got;

	got = recvmsg(talk, &message, MSG_CMSG_CLOEXEC); /* a caller that hangs delays this child alone */
	if (got <= 0)
		_exit(1);
	if (!is_whole(got, request))
		return fault_set(fault, "the zygote is of another gojail version; run: gojail reload");
	header = CMSG_FIRSTHDR(&message);
	if (check_mounts(request) < 0 ||
	    (request->ntrees && (!header || header->cmsg_type != SCM_RIGHTS ||
				 header->cmsg_len != CMSG_LEN(request->ntrees * sizeof(int)))))
		return fault_set(fault, "the zygote was sent a damaged request");
	for (uint32_t i = 0; i < request->ntrees; i++) {
		memcpy(&trees[i].fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
		trees[i].destination[sizeof(trees[i].destination) - 1] = '\0';
	}
	return 0;
}

/*
 * Enters the job's PID namespace, or a new one, which only the children of a process do: goes on as a child of the
 * zygote, which reaps it. In a new namespace it is process 1, which decides how PIDs go on, and what the job leaves
 * behind becomes its child, which the kernel reaps (SIG_IGN).
 */
static int enter_pid_namespace(const struct gojail_request *request, const struct gojail_tree *trees,
			       struct fault *fault)
{
	pid_t child;

	if (!(request->flags & GOJAIL_REQUEST_PID))
		return 0;
	if (enter_or_unshare(request, trees, GOJAIL_REQUEST_PID, "pid", CLONE_NEWPID, fault) < 0)
		return -1;
	child = k_fork_sibling();
	if (child < 0)
		return fault_set(fault, "cannot fork into the job's PID namespace: %s", strerror(errno));
	if (child > 0)
		_exit(0);
	setsid();
	signal(SIGCHLD, SIG_IGN);
	if (getpid() == 1)
		first_pid_apply(ZYGOTE_PROC_FD);
	return 0;
}

/*
 * Returns the user namespace for the tasks: from the trees, or a new one where uid 0 is the user and no other id is
 * mapped. Returns -1 with a fault.
 */
static int find_userns(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault)
{
	const struct gojail_tree *range = request_find_tree(request, trees, GOJAIL_TREE_USER);
	struct idmap user = {0, request->uid, 1}, group = {0, request->gid, 1};

	if (range)
		return range->fd;
	return make_userns(ZYGOTE_PROC_FD, request->uid, &user, &group, false, fault);
}

/* Moves a descriptor to a number without a meaning, unless it has one. */
static int move_up(int fd)
{
	if (fd > GOJAIL_RECORD_FD)
		return fd;
	int other = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, GOJAIL_RECORD_FD + 1);

	close_fd(&fd);
	return other;
}

/* What a sandbox has, by the numbers that steps take it from, at which the zygote has others. */
struct kept {
	int fds[GOJAIL_RECORD_FD];
};

#define KEPT_NONE                                                                                                      \
	{                                                                                                              \
		.fds = { [GOJAIL_STAGE_FD] = -1 }                                                                      \
	}

/* Keeps the root, and opens the namespaces of the sandbox, which this process has entered, except the host name's. */
static void open_kept(struct kept *kept, int root)
{
	static const char *const own[] = {"self/ns/mnt", "self/ns/pid", "self/ns/ipc"};

	kept->fds[GOJAIL_ROOT_FD] = move_up(root);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		kept->fds[GOJAIL_MNT_FD + i] = move_up(openat(ZYGOTE_PROC_FD, own[i], O_RDONLY | O_CLOEXEC));
}

/* Describes the jail for job_stage.h. */
static struct open_jail describe_jail(const struct kept *kept)
{
	return (struct open_jail){
		.proc = ZYGOTE_PROC_FD, .root = kept->fds[GOJAIL_ROOT_FD], .mnt = kept->fds[GOJAIL_MNT_FD]};
}

/* Gives a descriptor another number. Returns 0 or -1. */
static int renumber(int fd, int number) { return fd == number || dup3(fd, number, O_CLOEXEC) == number ? 0 : -1; }

/* Puts the descriptors that steps take at their numbers, which nobody uses before the record is written. */
static void number_kept(struct kept *kept, int user, struct fault *fault)
{
	kept->fds[GOJAIL_USER_FD] = move_up(user);
	/* Its number is the last, and is given first: the others have numbers above all of these by now. */
	kept->fds[GOJAIL_UTS_FD] = openat(ZYGOTE_PROC_FD, "self/ns/uts", O_RDONLY | O_CLOEXEC);
	for (int number = GOJAIL_UTS_FD; number >= GOJAIL_STAGE_FD; number--)
		if ((kept->fds[number] < 0 || renumber(kept->fds[number], number) < 0) &&
		    (number != GOJAIL_USER_FD || user >= 0))
			fault_set(fault, "cannot keep the sandbox's namespaces: %s", strerror(errno));
	if (user < 0)
		close(GOJAIL_USER_FD); /* another file of this process has the number */
}

_Static_assert(GOJAIL_UTS_FD == GOJAIL_RECORD_FD - 1, "the last number before the record's");

/* Reports whether another job is likely to ask for the same: not a second sandbox of a job, no network, no root of its
 * own. */
static bool is_common_request(const struct gojail_request *request, const struct gojail_tree *trees)
{
	return !(request->flags & (GOJAIL_REQUEST_SHARED | GOJAIL_REQUEST_NET)) &&
	       !request_find_tree(request, trees, ASSEMBLE_NO_MOUNT);
}

/* Reports whether a sandbox that was begun for one request is right for another. */
static bool is_same_kind(const struct gojail_request *begun, const struct gojail_request *request)
{
	const uint32_t later =
		GOJAIL_REQUEST_ROOT | GOJAIL_REQUEST_UTS; /* used by finish_assembly and everything after it */

	return (begun->flags | later) == (request->flags | later) && begun->nmounts == request->nmounts &&
	       memcmp(begun->mounts, request->mounts, sizeof(begun->mounts)) == 0;
}

/* A holder passes its request on through a pipe, in one piece (pipe(7)). */
_Static_assert(sizeof(struct gojail_request) <= PIPE_BUF, "a request is larger than PIPE_BUF");

#define BUILDER "gojail-builder"

/* Finishes the sandbox, and holds it for as long as this process lives. */
__attribute__((noreturn)) static void hold_sandbox(int talk, const struct gojail_request *request,
						   const struct gojail_tree *trees, const struct record *self,
						   struct kept *kept, struct fault *fault)
{
	const struct open_jail jail = describe_jail(kept);
	int user = -1, record;
	char byte;

	if (fault->text[0] || finish_assembly(jail.root, request, trees, fault) < 0 ||
	    ((request->flags & GOJAIL_REQUEST_ROOT) && (user = find_userns(request, trees, fault)) < 0)) {
		send_reply(talk, self, fault);
		_exit(1);
	}
	talk = move_up(talk);
	if (may_hide_begun())
		kept->fds[GOJAIL_STAGE_FD] = -1; /* the stage is made anew, with what the jail shows by now */
	kept->fds[GOJAIL_STAGE_FD] =
		move_up(finish_job_stage(&jail, kept->fds[GOJAIL_STAGE_FD], trees, request->ntrees, fault));
	number_kept(kept, user, fault);
	send_reply(talk, self, fault);
	if (fault->text[0] || scm_receive(talk, &byte, &record) != 1 || renumber(record, GOJAIL_RECORD_FD) < 0)
		_exit(1);
	if (record != GOJAIL_RECORD_FD)
		close(record);
	/* Root in a jail sees the numbers in /proc/PID/fd; to open them takes ptrace's rights over us (proc_pid_fd(5)).
	 */
	prctl(PR_SET_DUMPABLE, 0);
	syscall(SYS_close_range, GOJAIL_RECORD_FD + 1, ~0u, 0);
	prctl(PR_SET_NAME, GOJAIL_HOLDER_NAME); /* what has this name and no record, a sweep ends */
	for (;;)
		pause();
}

static struct gojail_tree trees[GOJAIL_TREES_MAX];

void run_holder(int talk, int requests)
{
	struct gojail_request request = {0};
	struct fault fault = {0};
	struct record self = read_self(ZYGOTE_PROC_FD);
	struct kept kept = KEPT_NONE;

	prctl(PR_SET_NAME, BUILDER);
	setsid();
	send_reply(talk, &self, &fault);
	if (receive_request(talk, &request, trees, &fault) == 0 && enter_pid_namespace(&request, trees, &fault) == 0) {
		self = read_self(ZYGOTE_PROC_FD);
		open_kept(&kept, begin_assembly(&request, trees, &fault));
	}
	if (!fault.text[0]) { /* where the pipe is full, it tells enough */
		static const struct gojail_request other = {.version = 0};

		write_ignored(requests, is_common_request(&request, trees) ? &request : &other, sizeof(request));
	}
	hold_sandbox(talk, &request, trees, &self, &kept, &fault);
}

/* Sends a message SPARE_... to the zygote, with a caller's socket unless that is -1. */
static void report_to_zygote(int zygote, char what, int talk)
{
	if (scm_send(zygote, what, talk) < 0)
		_exit(1);
}

/* Accepts a caller. The end of the zygote comes first, and ends the spare, too. */
static int accept_caller(int zygote)
{
	struct pollfd wait[] = {{.fd = ZYGOTE_SOCKET_FD, .events = POLLIN}, {.fd = zygote, .events = POLLIN}};

	for (;;) {
		if (poll(wait, 2, -1) < 0 && errno != EINTR)
			_exit(1);
		if (wait[1].revents || !watch_is_whole(false))
			_exit(0); /* the zygote, to which the caller is left then, ends as well */
		int talk = accept4(ZYGOTE_SOCKET_FD, NULL, NULL, SOCK_CLOEXEC);

		if (talk >= 0)
			return talk;
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			_exit(1); /* out of descriptors or memory: the zygote's to wait for better times */
	}
}

/*
 * Reads the request, which may come late or never, and leaves it in the socket. Reports whether it is whole. A caller
 * sees the end of this process, and asks the next zygote.
 */
static bool peek_request(int zygote, int talk, struct gojail_request *request)
{
	struct pollfd wait[] = {{.fd = talk, .events = POLLIN}, {.fd = zygote, .events = POLLIN}};
	struct iovec parts[] = {
		{.iov_base = request, .iov_len = sizeof(*request)},
		{.iov_base = trees, .iov_len = sizeof(trees)},
	};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

	while (poll(wait, 2, -1) < 0 && errno == EINTR)
		;
	if (wait[1].revents)
		_exit(0);
	return is_whole(recvmsg(talk, &message, MSG_PEEK), request);
}

void run_spare(int zygote, const struct gojail_request *pattern)
{
	struct gojail_request begun = *pattern, request = {0};
	struct kept kept = KEPT_NONE;
	struct fault fault = {0};
	struct open_jail jail;
	struct record self;
	int talk, root;

	begun.ntrees = 0;
	prctl(PR_SET_NAME, "gojail-spare");
	setsid();
	if (enter_pid_namespace(&begun, trees, &fault) < 0 || (root = begin_assembly(&begun, trees, &fault)) < 0)
		_exit(1);
	open_kept(&kept, root);
	note_begun(kept.fds[GOJAIL_ROOT_FD], &fault);
	jail = describe_jail(&kept);
	kept.fds[GOJAIL_STAGE_FD] = move_up(begin_job_stage(&jail, &fault));
	/* begin_job_stage returns by setns(2), which leads to the root of the mount namespace: in a chroot, another
	 * one. */
	if (fault.text[0] || !is_at_root())
		_exit(1);
	self = read_self(ZYGOTE_PROC_FD);
	/*
	 * A spare that is stopped goes on when its zygote ends, notices that, and ends too. A holder ignores the
	 * signal.
	 */
	prctl(PR_SET_PDEATHSIG, SIGCONT);
	for (report_to_zygote(zygote, SPARE_READY, -1);; report_to_zygote(zygote, SPARE_GIVES, talk), close(talk)) {
		talk = accept_caller(zygote);
		report_to_zygote(zygote, SPARE_BUSY, -1);
		if (!peek_request(zygote, talk, &request) || !is_common_request(&request, trees))
			continue;
		if (is_same_kind(&begun, &request))
			break;
		report_to_zygote(zygote, SPARE_GIVES, talk);
		_exit(0); /* the next spare is like this one */
	}
	close(ZYGOTE_SOCKET_FD);
	close(zygote); /* the other descriptors end when the sandbox gets their numbers, or is held */
	prctl(PR_SET_NAME, BUILDER);
	send_reply(talk, &self,
		   &fault); /* before what may hang: the jail's root can be on storage that does not answer */
	if (receive_request(talk, &request, trees, &fault) == 0)
		check_begun(&request, &fault);
	hold_sandbox(talk, &request, trees, &self, &kept, &fault);
}
