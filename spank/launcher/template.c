/* SPDX-License-Identifier: Apache-2.0 */
/* template.c: a jail and its stage, assembled once for all jobs of the node. */
#include "common/clock.h"
#include "common/fd.h"
#include "common/lock.h"
#include "common/node.h"
#include "common/record.h"
#include "common/syscalls.h"
#include "launcher/descriptors.h"
#include "launcher/library.h"
#include "launcher/mountinfo.h"
#include "launcher/origin.h"
#include "launcher/probing.h"
#include "launcher/remote.h"
#include "launcher/remount.h"
#include "launcher/verbs.h"
#include "launcher/watch.h"
#include "launcher/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#define BUILDER_GRACE_MS 1000 /* after a launcher's deadline, in which it reports that, or its caller kills it */

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
		fault_set(fault, "cannot open %s: %s; is the state directory full or read-only?", path,
			  strerror(errno));
	return fd;
}

/*
 * Kills the launcher that has the lock, if its deadline has passed: it is stopped or frozen, and its caller, which
 * would have killed it, has ended. Its name is in the lock while it has it.
 */
static void end_late_builder(int dir)
{
	struct record builder = {0};
	char text[96];
	int64_t until;

	scoped_fd lock = openat(dir, GOJAIL_LOCK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (read_string(lock, text, sizeof(text)) > 0 &&
	    sscanf(text, "%d %" SCNu64 " %" SCNd64, &builder.pid, &builder.start, &until) == 3 &&
	    clock_ms() > until + BUILDER_GRACE_MS && flock(lock, LOCK_EX | LOCK_NB) < 0)
		record_kill(&builder, 1000);
}

/*
 * Writes the name of this process into the lock. Without it, as in a full state directory, it is never killed for
 * being late.
 */
static void name_builder(int lock, const struct record *self, int64_t until)
{
	dprintf(lock, "%d %" PRIu64 " %" PRId64 "\n", (int)self->pid, self->start, until);
}

/* Removes the name of the process that had the lock. */
static void clear_builder(int lock)
{
	(void)!ftruncate(lock, 0);
	lseek(lock, 0, SEEK_SET);
}

/* Takes the lock under which one launcher assembles the template. Returns it, or -1 with a fault. */
static int lock_template(int dir, const struct record *self, int64_t until, struct fault *fault)
{
	char place[2 * GOJAIL_PATH_MAX], what[4 * GOJAIL_PATH_MAX];
	scoped_fd proc = open_node_proc(fault);
	struct mount_table mounts;
	int lock;

	if (proc < 0)
		return -1;
	end_late_builder(dir);
	mountinfo_read_own(proc, &mounts);
	mountinfo_describe(&mounts, library_word("source"), place, sizeof(place));
	mountinfo_free(&mounts);
	snprintf(what, sizeof(what), "the template of jail \"%s\" (root %s; does its storage %s%sanswer?)",
		 library_word("jail"), library_word("source"), place, *place ? " " : "");
	lock = lock_until(dir, GOJAIL_LOCK, until, what, fault);
	fault->silent = lock < 0;
	if (lock >= 0) {
		clear_builder(lock);
		name_builder(lock, self, until);
	}
	return lock;
}

/* Enters a new mount namespace, in which Go assembles that view. Returns 0, or -1 with a fault. */
static int assemble_view(const char *verb, int64_t until, struct fault *fault)
{
	if (unshare(CLONE_NEWNS) < 0)
		return fault_set(fault, "cannot create a mount namespace: %s", strerror(errno));
	return library_call_in_child(verb, until, fault);
}

/* Assembles the stage and then the jail, each in a copy of a namespace in which the jail's root is mounted: once, for
 * both. Returns the mount namespace of the stage, or -1 with a fault. */
static int assemble_template(const struct origin *origin, int proc, int *stage_mounts, int64_t until,
			     struct fault *fault)
{
	int stage;

	if (assemble_view("root", until, fault) < 0)
		return -1;
	scoped_fd both = openat(proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
	scoped_fd host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (assemble_view("stage", until, fault) < 0 || remote_collect(proc, origin, until, fault) < 0)
		return -1;
	stage = openat(proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
	*stage_mounts = watch_open(proc, fault);
	if (*stage_mounts < 0)
		return -1;
	/* setns(2) makes what is mounted on "/" the root of the process, which is the jail's. */
	if (both < 0 || host < 0 || stage < 0 || setns(both, CLONE_NEWNS) < 0 || fchdir(host) < 0 || chroot(".") < 0)
		return fault_set(fault, "cannot leave the stage: %s", strerror(errno));
	if (assemble_view("jail", until, fault) < 0 || remote_collect(proc, origin, until, fault) < 0)
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

/* Reports whether the jail has a template of this key that the caller does not want replaced: another launcher was
 * faster. */
static bool is_made(int dir, struct record *zygote)
{
	const char *unwanted = library_word("replace");
	char zygote_id[64];

	if (record_find(dir, GOJAIL_ZYGOTE, zygote) < 0 || strcmp(zygote->key, library_word("key")) != 0)
		return false;
	snprintf(zygote_id, sizeof(zygote_id), "%d:%" PRIu64, (int)zygote->pid, zygote->start);
	return strcmp(zygote_id, unwanted) != 0;
}

static void write_temporary(char *temporary, size_t size, const char *name)
{
	snprintf(temporary, size, ".%s.new", name);
}

static int creation_failed(const char *name, struct fault *fault)
{
	return fault_set(fault, "cannot create %s in the state directory: %s; is that full or read-only?", name,
			 strerror(errno));
}

/*
 * Creates a socket in the jail's state directory, under a temporary name: the one that is there may have a server.
 * Returns it, or -1 with a fault.
 */
static int create_socket(int dir, const char *name, struct fault *fault)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char temporary[GOJAIL_NAME_MAX];
	int fd;

	write_temporary(temporary, sizeof(temporary), name);
	/* sun_path has 108 bytes (unix(7)); the way through /proc is always short. */
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir, temporary);
	unlinkat(dir, temporary, 0);
	/* Non-blocking: the zygote and its spare both accept on its socket. */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1024) == 0)
		return fd;
	creation_failed(name, fault);
	close_fd(&fd);
	return -1;
}

/* Creates a file under a temporary name. Returns it, or -1 with a fault. */
static int create_file(int dir, const char *name, struct fault *fault)
{
	char temporary[GOJAIL_NAME_MAX];
	int fd;

	write_temporary(temporary, sizeof(temporary), name);
	unlinkat(dir, temporary, 0);
	fd = openat(dir, temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? creation_failed(name, fault) : fd;
}

/* Gives what was created under the temporary name its own. Returns 0, or -1 with a fault. */
static int rename_created(int dir, const char *name, struct fault *fault)
{
	char temporary[GOJAIL_NAME_MAX];

	write_temporary(temporary, sizeof(temporary), name);
	return renameat(dir, temporary, dir, name) == 0 ? 0 : creation_failed(name, fault);
}

/* What becomes of the launcher, while it is prepared: descriptors, most of them the zygote's. */
struct preparation {
	int dir, lock, reply, listener, storage, note, proc, stage, null, mounts, stage_mounts;
	struct origin origin;
};

/* Opens what is opened in the node's view, and finds out what the template comes from. Returns 0, or -1 with a fault.
 */
static int open_on_node(struct preparation *p, int64_t until, struct fault *fault)
{
	p->listener = create_socket(p->dir, GOJAIL_SOCKET, fault);
	p->storage = p->listener < 0 ? -1 : create_socket(p->dir, GOJAIL_STORAGE_SOCKET, fault);
	p->note = p->storage < 0 ? -1 : create_file(p->dir, GOJAIL_STORAGE, fault);
	p->proc = p->note < 0 ? -1 : open_node_proc(fault);
	return p->proc < 0 ?
		       -1 :
		       origin_find(&p->origin, library_word("jail"), library_word("source"), p->proc, until, fault);
}

#define FIRST_FREE_FD 16 /* above those with a meaning, below those of remote.h */

/*
 * Moves the descriptors to their numbers: the stage is at its own before anybody reads the record, and the lock stays
 * with its copy. Returns 0, or -1 with a fault, which can be said.
 */
static int number_descriptors(struct preparation *p, struct fault *fault)
{
	int *const all[] = {&p->lock, &p->dir,     &p->reply, &p->stage,       &p->listener, &p->null,
			    &p->proc, &p->storage, &p->note,  &p->origin.node, &p->mounts,   &p->stage_mounts};
	bool moved = true;

	p->reply = GOJAIL_REPLY_FD;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*all[i] = fcntl(*all[i], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
		moved = moved && *all[i] >= 0;
	}
	if (moved && dup3(p->stage, GOJAIL_STAGE_FD, O_CLOEXEC) >= 0 &&
	    dup3(p->listener, ZYGOTE_SOCKET_FD, O_CLOEXEC) >= 0 && dup3(p->proc, ZYGOTE_PROC_FD, O_CLOEXEC) >= 0 &&
	    dup3(p->storage, ZYGOTE_STORAGE_FD, O_CLOEXEC) >= 0 && dup3(p->note, ZYGOTE_NOTE_FD, O_CLOEXEC) >= 0 &&
	    dup3(p->origin.node, ZYGOTE_NODE_FD, O_CLOEXEC) >= 0 && dup3(p->mounts, ZYGOTE_MOUNTS_FD, O_CLOEXEC) >= 0 &&
	    dup3(p->stage_mounts, ZYGOTE_STAGE_MOUNTS_FD, O_CLOEXEC) >= 0) {
		p->origin.node = ZYGOTE_NODE_FD;
		return 0;
	}
	fault_set(fault, "cannot keep the zygote's descriptors: %s", strerror(errno));
	if (p->reply >= 0)
		dup2(p->reply, GOJAIL_REPLY_FD);
	return -1;
}

/*
 * Makes the template the one that steps find, with the record, which is written last. If this process is killed before
 * that, the record is of the previous zygote, whose sockets nobody serves then: a caller that cannot connect has that
 * zygote replaced.
 * Returns 0, or -1 with a fault.
 */
static int publish(const struct preparation *p, const struct record *zygote, struct fault *fault)
{
	char identity[IDENTITY_RECORD_MAX];

	scoped_fd file = create_file(p->dir, GOJAIL_IDENTITY, fault);

	identity_write_record(&p->origin.identity, identity, sizeof(identity));
	if (file < 0 || (write(file, identity, strlen(identity)) != (ssize_t)strlen(identity) &&
			 fault_set(fault, "cannot write " GOJAIL_IDENTITY " in the state directory; is that full?")))
		return -1;
	probing_note_good(ZYGOTE_NOTE_FD); /* whatever is mounted was read just now */
	if (p->origin.local && remote_count() == 0)
		fchmod(ZYGOTE_NOTE_FD, GOJAIL_STORAGE_LOCAL); /* after a failure, it counts as remote */
	/* The sockets come first: identity and note, by which nobody is asked, would else say of the zygote before that
	 * it is of the present tree. */
	if (rename_created(p->dir, GOJAIL_STORAGE_SOCKET, fault) < 0 ||
	    rename_created(p->dir, GOJAIL_SOCKET, fault) < 0 || rename_created(p->dir, GOJAIL_IDENTITY, fault) < 0 ||
	    rename_created(p->dir, GOJAIL_STORAGE, fault) < 0)
		return -1;
	return record_write(p->dir, GOJAIL_ZYGOTE, zygote, fault);
}

int template_serve(const struct node *node, int64_t until, struct fault *fault)
{
	struct record zygote = {.pid = getpid(), .start = read_start_time(getpid())}, before = {0};
	static struct preparation p; /* the zygote keeps what it says of the origin */

	if (slurmd_enter_namespaces(node, fault) < 0)
		return -1;
	p.dir = open_template_dir(node, library_word("jail"), fault);
	p.lock = p.dir < 0 ? -1 : lock_template(p.dir, &zygote, until, fault);
	if (p.lock < 0)
		return -1;
	if (is_made(p.dir, &before))
		return 0;
	snprintf(zygote.key, sizeof(zygote.key), "%s", library_word("key"));
	if (open_on_node(&p, until, fault) < 0)
		return -1;
	p.stage = assemble_template(&p.origin, p.proc, &p.stage_mounts, until, fault);
	p.mounts = p.stage < 0 ? -1 : watch_open(p.proc, fault);
	if (p.mounts < 0 || watch_remember(p.mounts, p.stage_mounts, fault) < 0 ||
	    find_template_mounts(p.proc, fault) < 0)
		return -1;
	p.null = open_null(fault);
	if (p.null < 0 || number_descriptors(&p, fault) < 0)
		return -1;
	if (publish(&p, &zygote, fault) < 0) {
		dup2(p.reply, GOJAIL_REPLY_FD);
		return -1;
	}
	clear_builder(p.lock);
	record_kill(&before, 0); /* the one of the old configuration, or of the old tree; its holders live on */
	/* The zygote before has ended: this one must not end if its caller is gone. */
	signal(SIGPIPE, SIG_IGN);
	dprintf(p.reply, "ok\n");
	for (int fd = 0; fd < 3; fd++)
		dup2(p.null, fd);
	syscall(SYS_close_range, ZYGOTE_LAST_FD + 1, REMOTE_FIRST_FD - 1, 0);
	syscall(SYS_close_range, remote_end_fd(), ~0u, 0);
	prctl(PR_SET_NAME, GOJAIL_ZYGOTE_NAME);
	serve_as_zygote(&p.origin);
}
