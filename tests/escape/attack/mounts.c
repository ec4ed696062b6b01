// SPDX-License-Identifier: Apache-2.0
//
// Mounts, device nodes, and what of /proc, /sys and the cgroups can be written.

#include "attack.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

// can_write opens a file of the kernel's own file systems, and of no others, for writing. It writes nothing.
static bool can_write(const char *path)
{
	struct statfs fs = {};
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	fstatfs(fd, &fs);
	close(fd);
	return fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC ||
	       fs.f_type == CGROUP2_SUPER_MAGIC;
}

// beneath takes everything off that is mounted on / and looks at what is below it.
static void beneath(void)
{
	powers();
	mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	int self = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (self < 0)
		held_errno("/proc/self/ns/mnt");
	if (umount2("/", MNT_DETACH) < 0)
		held_errno("umount /");
	if (setns(self, CLONE_NEWNS) < 0) // to the root of the namespace, whatever that is now
		held_errno("setns");
	int root = open("/", O_PATH | O_CLOEXEC);
	if (root >= 0 && is_outside(root))
		escaped("the node's root lay below the jail's");
	held("nothing lies below the jail's root");
}

// pivot makes another root of the namespace and looks at what the old one was put on.
static void pivot(void)
{
	powers();
	char dir[] = "/tmp/attack-XXXXXX", old[64];
	if (!mkdtemp(dir))
		held_errno("mkdtemp");
	snprintf(old, sizeof old, "%s/old", dir);
	bool done = mount("tmpfs", dir, "tmpfs", 0, "size=64k") == 0 && mkdir(old, 0755) == 0 && chdir(dir) == 0 &&
		    syscall(SYS_pivot_root, ".", "old") == 0;
	int why = errno;
	rmdir(dir);
	if (!done)
		held("pivot_root: %s", strerror(why));
	for (int i = 0; i < 8; i++) {
		int below = open("/old", O_PATH | O_CLOEXEC);
		if (below >= 0 && is_outside(below))
			escaped("pivot_root uncovered the node's root");
		close(below);
		umount2("/old", MNT_DETACH);
	}
	held("pivot_root leads to nothing but the jail");
}

// unmask takes off what hides or protects parts of /proc.
static void unmask(void)
{
	powers();
	mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL);
	for (int i = 0; i < 4; i++)
		umount2("/proc/sys", MNT_DETACH);
	if (can_write("/proc/sys/kernel/core_pattern"))
		escaped("/proc/sys/kernel/core_pattern can be written");
	held("/proc/sys stays as it is");
}

// fresh mounts the kernel's own file systems once more, without masks.
static void fresh(void)
{
	static const char *const types[] = {"devtmpfs", "sysfs",      "cgroup2",     "debugfs", "tracefs",
					    "bpf",      "securityfs", "binfmt_misc", "proc"};
	powers();
	char dir[] = "/tmp/attack-XXXXXX";
	if (!mkdtemp(dir))
		held_errno("mkdtemp");
	mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		if (mount(types[i], dir, types[i], 0, NULL) == 0) {
			found("mounted %s", types[i]);
			umount2(dir, MNT_DETACH);
		}
	}
	rmdir(dir);
	judge("no file system of the kernel's could be mounted");
}

// open_node makes a node in a directory, opens it and takes it away again.
static bool open_node(const char *directory, mode_t type, dev_t device)
{
	char path[100];
	snprintf(path, sizeof path, "%s/attack-node-%d", directory, getpid());
	if (mknod(path, type | 0600, device) < 0)
		return false;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	unlink(path);
	close(fd);
	return fd >= 0;
}

// nodes tries devices that no jail has: the disk that it lies on, and some that every
// kernel has and that ask for no capability (admin-guide/devices.txt).
static void nodes(void)
{
	static const char *const places[] = {"/",    "/dev",        "/dev/shm", "/tmp",       "/var/tmp",
					     "/run", "/home/alice", "/mnt",     "/dev/mqueue"};
	struct stat root;
	if (stat("/", &root) < 0)
		held_errno("/");
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (major(root.st_dev) && open_node(places[i], S_IFBLK, root.st_dev)) // 0: a file system without a disk
			found("opened the node's disk in %s", places[i]);
		else if (open_node(places[i], S_IFBLK, makedev(7, 0)) ||
			 open_node(places[i], S_IFCHR, makedev(10, 229)) ||
			 open_node(places[i], S_IFCHR, makedev(10, 200)) ||
			 open_node(places[i], S_IFCHR, makedev(1, 11)))
			found("opened a device in %s", places[i]);
	}
	judge("no device that the job was not given could be opened");
}

static void sysctls(void)
{
	static const char *const files[] = {
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/panic",
		"/proc/sys/vm/drop_caches",      "/proc/sysrq-trigger",       "/proc/irq/default_smp_affinity",
		"/sys/kernel/uevent_helper",     "/sys/kernel/mm/ksm/run",
	};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (can_write(files[i]))
			found("%s", files[i]);
	judge("no setting of the kernel can be written");
}

static void masked(void)
{
	static const char *const files[] = {"/proc/keys", "/proc/kcore", "/proc/timer_list", "/proc/sched_debug",
					    "/proc/latency_stats"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char byte;
		int fd = open(files[i], O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, &byte, 1) == 1)
			found("read %s", files[i]);
		close(fd);
	}
	judge("nothing of /proc tells about the whole node");
}

// try_file opens a file of the kernel's for writing; ten suffice. The files of processes are their own, see proc(5).
static int try_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
	static int count;
	(void)st;
	if (at->level == 1 && (isdigit(path[at->base]) || strstr(path + at->base, "self")))
		return FTW_SKIP_SUBTREE;
	if (type == FTW_F && can_write(path)) {
		found("%s", path);
		if (++count == 10)
			return FTW_STOP;
	}
	return FTW_CONTINUE;
}

static void kernel_files(void)
{
	nftw("/proc", try_file, 16, FTW_PHYS | FTW_ACTIONRETVAL);
	nftw("/sys", try_file, 16, FTW_PHYS | FTW_ACTIONRETVAL);
	judge("no file of the kernel's can be written");
}

static int try_cgroup(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	const char *name = path + at->base;
	if (type == FTW_F &&
	    (!strcmp(name, "cgroup.procs") || !strcmp(name, "release_agent") || !strcmp(name, "devices.allow")) &&
	    can_write(path))
		found("can write %s", path);
	return 0;
}

static void cgroup_write(void)
{
	nftw("/sys/fs/cgroup", try_cgroup, 16, FTW_PHYS);
	judge("no cgroup can be written");
}

// see_cgroup looks for the names in ATTACK_CGROUPS, which are those of the victims' jobs.
static int see_cgroup(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	char name[200];
	snprintf(name, sizeof name, " %s ", path + at->base);
	if (type == FTW_D && strstr(getenv("ATTACK_CGROUPS"), name))
		found("%s", path);
	return 0;
}

static void cgroup_see(void)
{
	if (!getenv("ATTACK_CGROUPS"))
		held("there are no cgroups of jobs");
	nftw("/sys/fs/cgroup", see_cgroup, 16, FTW_PHYS);
	judge("no other job's cgroup is seen");
}

const struct attack mount_attacks[] = {
	{"beneath", beneath},
	{"pivot", pivot},
	{"unmask", unmask},
	{"fresh-mounts", fresh},
	{"mknod", nodes},
	{"sysctl", sysctls},
	{"masked", masked},
	{"kernel-files", kernel_files},
	{"cgroup-write", cgroup_write},
	{"cgroup-see", cgroup_see},
	{},
};
