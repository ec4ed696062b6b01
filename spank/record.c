/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

static uint64_t start_of(int proc, const char *path)
{
	char text[1024], *field;
	ssize_t got;

	scoped_fd fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || (got = read(fd, text, sizeof(text) - 1)) <= 0)
		return 0;
	text[got] = '\0';
	/* The name in field 2 may hold blanks and brackets: count from its end. */
	field = strrchr(text, ')');
	if (!field || field[1] != ' ' || field[2] == 'Z' || field[2] == 'X')
		return 0; /* a zombie holds nothing */
	for (int i = 2; i < 22 && field; i++)
		field = strchr(field + 1, ' ');
	return field ? strtoull(field + 1, NULL, 10) : 0;
}

int record_open(int dir, const char *name, struct record *record)
{
	char text[128], key[GOJAIL_KEY_LEN + 2], end;
	int version, pid;
	ssize_t got;

	*record = (struct record){0};
	scoped_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || (got = read(fd, text, sizeof(text) - 1)) <= 0)
		return -1;
	text[got] = '\0';
	if (sscanf(text, "%d %d %" SCNu64 " %17s%c", &version, &pid, &record->start, key, &end) != 5 ||
	    pid < 2 || end != '\n' || strlen(key) != GOJAIL_KEY_LEN)
		return -1;
	record->pid = pid;
	if (version != GOJAIL_VERSION)
		return -1;
	memcpy(record->key, key, sizeof(record->key));
	return record->start ? record_process(record) : -1;
}

int record_find(int dir, const char *name, struct record *record)
{
	scoped_fd process = record_open(dir, name, record);

	return process < 0 ? -1 : 0;
}

int record_write(int dir, const char *name, const struct record *record, struct fault *fault)
{
	char temporary[GOJAIL_NAME_MAX * 2 + 8], text[128];
	int length, written;

	snprintf(temporary, sizeof(temporary), ".%s.new", name);
	length = snprintf(text, sizeof(text), "%d %d %" PRIu64 " %s\n", GOJAIL_VERSION,
			  (int)record->pid, record->start, record->key);
	unlinkat(dir, temporary, 0);
	scoped_fd fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		goto failed;
	written = (int)write(fd, text, (size_t)length);
	if (written >= 0 && written != length)
		errno = ENOSPC;
	if (written == length && renameat(dir, temporary, dir, name) == 0)
		return 0;
failed:
	fault_set(fault, "cannot write the record %s in the state directory: %s; "
			 "is it full or read-only?", name, strerror(errno));
	unlinkat(dir, temporary, 0);
	return -1;
}

int record_process(const struct record *record)
{
	char path[32];
	int process;

	snprintf(path, sizeof(path), "/proc/%d", (int)record->pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process >= 0 && (record->pid < 2 || start_of(process, "stat") != record->start)) {
		close_fd(&process);
		errno = ESRCH;
	}
	return process;
}

int process_namespace(int process, const char *kind)
{
	char path[16];

	snprintf(path, sizeof(path), "ns/%s", kind);
	return openat(process, path, O_RDONLY | O_CLOEXEC);
}

int process_root(int process)
{
	return openat(process, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int descriptor_of(int process, int number)
{
	char path[16];

	snprintf(path, sizeof(path), "fd/%d", number);
	return openat(process, path, O_RDONLY | O_CLOEXEC);
}

int process_stage(int process)
{
	return descriptor_of(process, GOJAIL_STAGE_FD);
}

int process_user(int process)
{
	return descriptor_of(process, GOJAIL_USER_FD);
}

/* A process in exit has let go of its namespaces before its number can be another's (do_exit in the kernel's exit.c). */
static int has_mounts(int process)
{
	char link[64];

	return readlinkat(process, "ns/mnt", link, sizeof(link)) > 0 ? 0 : -1;
}

/*
 * Process 1 of a PID namespace waits, as the last thing it does, until the others there are reaped: who is
 * traced from outside is reaped when the tracer likes. It holds nothing by then.
 */
int record_end(const struct record *record, int patience_ms)
{
	scoped_fd process = record_process(record);

	if (process < 0)
		return errno == ENOENT || errno == ESRCH ? 0 : -1;
	scoped_fd pidfd = k_pidfd_open(record->pid);
	struct pollfd gone = {.fd = pidfd, .events = POLLIN};

	if (pidfd >= 0 && has_mounts(process) == 0) { /* else the number may have been another's by then */
		k_pidfd_kill(pidfd, SIGKILL);
		if (poll(&gone, 1, patience_ms) == 1)
			return 0;
	}
	return has_mounts(process) < 0 && errno == ENOENT ? 0 : -1;
}

uint64_t process_start(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return start_of(AT_FDCWD, path);
}

int proc_open(struct fault *fault)
{
	struct statfs fs;
	int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC)
		return fd;
	close_fd(&fd);
	return fault_set(fault, "/proc of the node is not there");
}

struct record proc_self(int proc)
{
	struct record self = {0};
	char text[16] = "";

	if (readlinkat(proc, "self", text, sizeof(text) - 1) > 0)
		self.pid = atoi(text);
	self.start = start_of(proc, "self/stat");
	return self;
}
