/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/template.h"

#include "common/fd.h"
#include "common/lock.h"
#include "common/record.h"
#include "common/syscalls.h"
#include "launcher/library.h"
#include "launcher/remount.h"
#include "launcher/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Opens STATE/jails/JAIL, and creates it if it is missing. Returns -1 with a fault. */
static int open_template_dir(const struct node *node, const char *jail, struct fault *fault)
{
	char path[GOJAIL_PATH_MAX + GOJAIL_NAME_MAX + 16];
	int fd;

	snprintf(path, sizeof(path), "%s/" GOJAIL_JAILS, node->state);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/" GOJAIL_JAILS "/%s", node->state, jail);
	mkdir(path, 0700);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		fault_set(fault, "cannot open %s: %s; is the state directory full or read-only?",
			  path, strerror(errno));
	return fd;
}

/* Enters a new mount namespace, in which Go assembles that view. Returns 0, or -1 with a fault. */
static int assemble_view(const char *verb, int64_t until, struct fault *fault)
{
	if (unshare(CLONE_NEWNS) < 0)
		return fault_set(fault, "cannot create a mount namespace: %s", strerror(errno));
	return library_call_in_child(verb, until, fault);
}

static int assemble_template(int64_t until, struct fault *fault)
{
	scoped_fd host = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	int stage;

	if (assemble_view("stage", until, fault) < 0)
		return -1;
	stage = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (host < 0 || stage < 0 || setns(host, CLONE_NEWNS) < 0)
		return fault_set(fault, "cannot leave the stage: %s", strerror(errno));
	if (assemble_view("jail", until, fault) < 0)
		return -1;
	return stage;
}

/* Opens /dev/null of the jail, whose owner may have put something else there. Returns -1 with a fault. */
static int open_null(struct fault *fault)
{
	struct stat st;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (null >= 0 && fstat(null, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		return null;
	close_fd(&null);
	return fault_set(fault, "the jail has no /dev/null");
}

#define FIRST_FREE_FD 16 /* above those with a meaning */

int template_serve(const struct node *node, int64_t until, struct fault *fault)
{
	struct record zygote = {.pid = getpid(), .start = read_start_time(getpid())};
	int listener, lock, stage, null, reply, proc;

	int dir = open_template_dir(node, library_word("jail"), fault);
	if (dir < 0)
		return -1;
	lock = lock_until(dir, GOJAIL_LOCK, until, "the template of the jail (does its storage answer?)", fault);
	if (lock < 0)
		return -1;
	struct record other = {0};
	if (record_find(dir, GOJAIL_ZYGOTE, &other) == 0 && strcmp(other.key, library_word("key")) == 0)
		return 0; /* another launcher was faster */
	snprintf(zygote.key, sizeof(zygote.key), "%s", library_word("key"));
	listener = listen_as_zygote(dir, fault);
	if (listener < 0)
		return -1;
	proc = open_node_proc(fault);
	stage = proc < 0 ? -1 : assemble_template(until, fault);
	if (stage < 0 || find_template_mounts(proc, fault) < 0)
		return -1;
	null = open_null(fault);
	if (null < 0)
		return -1;
	/* The stage has its number before anybody reads the record; the lock stays with its copy. */
	lock = fcntl(lock, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	dir = fcntl(dir, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	reply = fcntl(GOJAIL_REPLY_FD, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	stage = fcntl(stage, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	listener = fcntl(listener, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	null = fcntl(null, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	proc = fcntl(proc, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	if (proc < 0 || lock < 0 || dir < 0 || reply < 0 || stage < 0 || listener < 0 || null < 0 ||
	    dup3(stage, GOJAIL_STAGE_FD, O_CLOEXEC) < 0 || dup3(listener, ZYGOTE_SOCKET_FD, O_CLOEXEC) < 0 ||
	    dup3(proc, ZYGOTE_PROC_FD, O_CLOEXEC) < 0)
		fault_set(fault, "cannot keep the zygote's descriptors: %s", strerror(errno));
	if (fault->text[0] || record_write(dir, GOJAIL_ZYGOTE, &zygote, fault) < 0) {
		dup2(reply, GOJAIL_REPLY_FD);
		return -1;
	}
	record_kill(&other, 0); /* the one of the old configuration; its holders live on */
	dprintf(reply, "ok\n");
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	/* Exactly the stage, the socket and the node's /proc stay open. */
	syscall(SYS_close_range, ZYGOTE_PROC_FD + 1, ~0u, 0);
	prctl(PR_SET_NAME, GOJAIL_ZYGOTE_NAME);
	serve_as_zygote();
}
