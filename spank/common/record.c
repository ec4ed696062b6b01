/* SPDX-License-Identifier: Apache-2.0 */
#include "common/record.h"

#include "common/fd.h"
#include "common/syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

static uint64_t parse_start_time(int proc, const char *path)
{
	char text[1024], *field;

	if (read_file(proc, path, text, sizeof(text)) <= 0)
		return 0;
	/* The name in field 2 may hold blanks and brackets: count from its end. */
	field = strrchr(text, ')');
	if (!field || field[1] != ' ' || field[2] == 'Z' || field[2] == 'X')
		return 0; /* a zombie holds nothing */
	for (int i = 2; i < 22 && field; i++)
		field = strchr(field + 1, ' ');
	return field ? strtoull(field + 1, NULL, 10) : 0;
}

bool pidfd_has_ended(int pidfd)
{
	struct pollfd gone = {.fd = pidfd, .events = POLLIN};

	return poll(&gone, 1, 0) != 0;
}

/*
 * Reports whether a process has the record that is open here, in a fifth of the time that reading its start time takes.
 * The file is not opened: if the process is another one, closing its file may block on whatever serves it.
 */
static bool has_record(pid_t pid, int record)
{
	char path[48];
	struct stat wanted;
	struct statx has;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, GOJAIL_RECORD_FD);
	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &has) == 0 && fstat(record, &wanted) == 0 &&
	       has.stx_ino == wanted.st_ino && makedev(has.stx_dev_major, has.stx_dev_minor) == wanted.st_dev;
}

/* Returns a pidfd of the process of a record, or -1; fd is that record, or -1. */
static int open_pidfd_of(const struct record *record, int fd)
{
	int process = k_pidfd_open(record->pid);
	bool is_its = process >= 0 &&
		      ((fd >= 0 && has_record(record->pid, fd)) || read_start_time(record->pid) == record->start);

	/* The number was the process's when it was opened if it is so later. */
	if (!is_its || pidfd_has_ended(process))
		close_fd(&process);
	return process;
}

/* Opens and reads dir/name. Returns its descriptor, or -1. */
static int open_record(int dir, const char *name, struct record *record)
{
	char text[128], key[GOJAIL_KEY_LEN + 2], end;
	int version, pid, fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	*record = (struct record){0};
	read_string(fd, text, sizeof(text));
	if (sscanf(text, "%d %d %" SCNu64, &version, &pid, &record->start) != 3 || pid < 2)
		goto none;
	record->pid = pid; /* that of another version's, too: it is to be ended */
	record->foreign = version != GOJAIL_VERSION;
	if (record->foreign || sscanf(text, "%*d %*d %*u %17s %" SCNu32 "%c", key, &record->uid, &end) != 3 ||
	    (end != '\n' && end != ' ') || strlen(key) != GOJAIL_KEY_LEN || !record->start)
		goto none;
	memcpy(record->key, key, sizeof(record->key));
	return fd;
none:
	close_fd(&fd);
	return -1;
}

int record_read(int dir, const char *name, struct record *record)
{
	scoped_fd fd = open_record(dir, name, record);

	return fd < 0 ? -1 : 0;
}

int record_open(int dir, const char *name, struct record *record)
{
	scoped_fd fd = open_record(dir, name, record);

	return fd < 0 ? -1 : open_pidfd_of(record, fd);
}

int record_open_pidfd(const struct record *record) { return open_pidfd_of(record, -1); }

int record_find(int dir, const char *name, struct record *record)
{
	scoped_fd process = record_open(dir, name, record);

	return process < 0 ? -1 : 0;
}

/* What gojail/state/record.go reads, and no more. */
_Static_assert(sizeof(GOJAIL_RELEASE) - 1 <= 32, "the version is too long for a record");

/* Creates a file, in the place of one that a process left that was killed. Returns -1 with errno. */
static int create_file(int dir, const char *name)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd = openat(dir, name, flags, 0600);

	if (fd < 0 && errno == EEXIST && unlinkat(dir, name, 0) == 0)
		fd = openat(dir, name, flags, 0600);
	return fd;
}

int record_write(int dir, const char *name, const struct record *record, struct fault *fault)
{
	char temporary[GOJAIL_NAME_MAX * 2 + 8], text[128];
	int length, written;

	snprintf(temporary, sizeof(temporary), ".%s.new", name);
	length = snprintf(text, sizeof(text), "%d %d %" PRIu64 " %s %" PRIu32 " " GOJAIL_RELEASE "\n", GOJAIL_VERSION,
			  (int)record->pid, record->start, record->key, record->uid);
	scoped_fd fd = create_file(dir, temporary);
	if (fd < 0)
		goto failed;
	written = (int)write(fd, text, (size_t)length);
	if (written >= 0 && written != length)
		errno = ENOSPC;
	if (written == length && renameat(dir, temporary, dir, name) == 0)
		return 0;
failed:
	fault_set(fault,
		  "cannot write the record %s in the state directory: %s; "
		  "is it full or read-only?",
		  name, strerror(errno));
	unlinkat(dir, temporary, 0);
	return -1;
}

int record_open_proc(const struct record *record)
{
	char path[32];
	int process;

	snprintf(path, sizeof(path), "/proc/%d", (int)record->pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process >= 0 && (record->pid < 2 || parse_start_time(process, "stat") != record->start)) {
		close_fd(&process);
		errno = ESRCH;
	}
	return process;
}

int find_process(bool (*is_wanted)(int process, void *wanted), void *wanted)
{
	scoped_list *proc = opendir("/proc");

	for (const char *name; (name = next_name(proc));) {
		scoped_fd process = name[0] < '1' || name[0] > '9' ?
					    -1 :
					    openat(dirfd(proc), name, O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (process >= 0 && is_wanted(process, wanted))
			return take_fd(&process);
	}
	return -1;
}

bool record_is_foreign(const struct record *record)
{
	scoped_fd process = record->foreign ? record_open_proc(record) : -1;

	return process >= 0;
}

bool record_is_of_root(int process)
{
	static const char root[] = "\nUid:\t0\t0\t0\t0\n";
	char text[2048];

	return read_file(process, "status", text, sizeof(text)) > 0 && strstr(text, root);
}

int open_namespace(int process, const char *kind)
{
	char path[16];

	snprintf(path, sizeof(path), "ns/%s", kind);
	return openat(process, path, O_RDONLY | O_CLOEXEC);
}

int record_get_fd(const struct record *record, int pidfd, int number)
{
	char path[48];
	int taken = k_pidfd_getfd(pidfd, number);

	if (taken >= 0 || errno == EBADF || errno == ESRCH)
		return taken;
	/* Root may not do that, either, where kernel.yama.ptrace_scope is 3 (the kernel's admin-guide/LSM/Yama.rst). */
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)record->pid, number);
	taken = open(path, O_CLOEXEC | (number == GOJAIL_ROOT_FD ? O_PATH : O_RDONLY));
	if (taken >= 0 && pidfd_has_ended(pidfd)) {
		close_fd(&taken);
		errno = ESRCH;
	}
	return taken;
}

/*
 * Reports whether the process still has a mount namespace: a process that exits gives its namespaces up before its pid
 * can be reused (do_exit in the kernel's exit.c). errno says why not.
 */
static bool has_mounts(int process)
{
	char link[64];

	return readlinkat(process, "ns/mnt", link, sizeof(link)) > 0;
}

/*
 * Process 1 of a PID namespace waits at the end of its exit until all other processes there are reaped. A process that
 * is traced from outside is reaped only when its tracer does so. Process 1 holds nothing by then.
 */
int record_kill(const struct record *record, int patience_ms)
{
	scoped_fd process = record_open_proc(record);

	if (process < 0)
		return errno == ENOENT || errno == ESRCH ? 0 : -1;
	scoped_fd pidfd = k_pidfd_open(record->pid);
	struct pollfd gone = {.fd = pidfd, .events = POLLIN};

	if (pidfd >= 0 && has_mounts(process)) { /* else the number may have been another's by then */
		k_pidfd_kill(pidfd, SIGKILL);
		if (poll(&gone, 1, patience_ms) == 1)
			return 0;
	}
	return !has_mounts(process) && errno == ENOENT ? 0 : -1;
}

uint64_t read_start_time(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return parse_start_time(AT_FDCWD, path);
}

int open_node_proc(struct fault *fault)
{
	struct statfs fs;
	int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC)
		return fd;
	close_fd(&fd);
	return fault_set(fault, "/proc of the node is not mounted");
}

struct record read_self(int proc)
{
	struct record self = {0};
	char text[16] = "";

	if (readlinkat(proc, "self", text, sizeof(text) - 1) > 0)
		self.pid = atoi(text);
	self.start = parse_start_time(proc, "self/stat");
	return self;
}
