/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurmd.c: the mounts of slurmd, which templates are made of. A step may be in a mount namespace of its job's, with
 * directories that are the job's own (job_container/tmpfs with EntireStepInNS, namespace/linux), and its launcher with
 * it: a template of these would show them to all jobs.
 */
#include "common/fd.h"
#include "common/node.h"
#include "common/path.h"
#include "common/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes which mount namespace it is, in the form of a record's key. */
static void write_key(char *key, size_t size, const struct stat *mounts)
{
	snprintf(key, size, "%0*llx", GOJAIL_KEY_LEN, (unsigned long long)mounts->st_ino);
}

int slurmd_note(const struct node *node, struct fault *fault)
{
	struct record slurmd = {.pid = getpid(), .start = read_start_time(getpid())};
	scoped_fd dir = open(node->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat mounts;

	if (dir < 0 || stat("/proc/self/ns/mnt", &mounts) < 0)
		return fault_set(fault, "cannot note the mount namespace of slurmd in %s: %s", node->state,
				 strerror(errno));
	write_key(slurmd.key, sizeof(slurmd.key), &mounts);
	return record_write(dir, GOJAIL_SLURMD, &slurmd, fault);
}

/* Reads the record of slurmd, which may be process 1, of a container. Returns 0 or -1. */
static int read_slurmd(const struct node *node, struct record *slurmd)
{
	char path[GOJAIL_PATH_MAX + 16], text[128];

	snprintf(path, sizeof(path), "%s/" GOJAIL_SLURMD, node->state);
	read_file(AT_FDCWD, path, text, sizeof(text));
	return sscanf(text, "%*d %d %" SCNu64 " %16s", &slurmd->pid, &slurmd->start, slurmd->key) == 3 ? 0 : -1;
}

/*
 * Reports whether a process, given its /proc directory, is a slurmd of root's in that mount namespace. The number of a
 * namespace can be that of a job's after it: slurmstepd has another name.
 */
static bool is_slurmd_in(int process, void *key)
{
	char own[GOJAIL_KEY_LEN + 1], name[32];
	struct stat mounts;

	if (fstatat(process, "ns/mnt", &mounts, 0) < 0)
		return false;
	write_key(own, sizeof(own), &mounts);
	if (strcmp(own, key))
		return false;
	return read_file(process, "comm", name, sizeof(name)) > 0 && strncmp(name, "slurmd", strlen("slurmd")) == 0 &&
	       record_is_of_root(process);
}

/*
 * Opens the /proc directory of slurmd. Returns -1 if that has ended, or is in another PID namespace than this process.
 * If the recorded process has ended, slurmd is another one in its mount namespace: one that went into the background
 * after it had loaded the plugin (up to 24.05), that resumed after the one of a failed reconfiguration had written the
 * record, or that runs although a second start wrote the record and failed.
 */
static int open_slurmd(struct record *slurmd)
{
	char path[32];
	int process;

	snprintf(path, sizeof(path), "/proc/%d", (int)slurmd->pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* The directory is slurmd's if the number is so later. */
	if (process >= 0 && read_start_time(slurmd->pid) != slurmd->start)
		close_fd(&process);
	return process >= 0 ? process : find_process(is_slurmd_in, slurmd->key);
}

/*
 * Enters the namespaces beside that of mounts which a starter may have of its own, such as an administrator's by
 * unshare(1) or ip-netns(8): sandboxes without such namespaces of their own have the template's. Returns 0, or -1 with
 * a fault.
 */
static int enter_others(int process, const char *whose, struct fault *fault)
{
	static const struct {
		const char *name;
		int type;
	} kinds[] = {{"net", CLONE_NEWNET}, {"ipc", CLONE_NEWIPC}, {"uts", CLONE_NEWUTS}, {"cgroup", CLONE_NEWCGROUP}};
	char path[32];
	struct stat own, its;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		scoped_fd namespace = open_namespace(process, kinds[i].name);

		snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i].name);
		/*
		 * Without CAP_SYS_PTRACE it may not be opened; a user namespace may refuse to enter even the own one.
		 */
		if (namespace < 0 || stat(path, &own) < 0 || fstat(namespace, &its) < 0 || is_same_file(&own, &its))
			continue;
		if (setns(namespace, kinds[i].type) < 0)
			return fault_set(
				fault,
				"cannot enter the %s namespace of %s: %s; start gojail in the node's own namespaces",
				kinds[i].name, whose, strerror(errno));
	}
	return 0;
}

/*
 * Stays in the mounts of this process where there is no slurmd: if they are those of process 1, in which no job is that
 * has mounts of its own, or if no slurmd with gojail has run. The number of the namespace of a slurmd that has ended
 * proves nothing: the kernel gives it to the next one, which may be a job's. Returns 0, or -1 with a fault.
 */
static int stay_here(const struct node *node, bool known, const struct stat *own, struct fault *fault)
{
	scoped_fd first = open("/proc/1", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped_fd mounts = first < 0 ? -1 : open_namespace(first, "mnt");
	struct stat its;

	if (mounts >= 0 && fstat(mounts, &its) == 0 && is_same_file(own, &its))
		return enter_others(first, "process 1", fault);
	if (!known)
		return 0;
	return fault_set(
		fault,
		"slurmd has ended (%s/" GOJAIL_SLURMD
		"), and the mounts of this job are its own: no jail is made of them; try again when slurmd runs",
		node->state);
}

int slurmd_enter_namespaces(const struct node *node, struct fault *fault)
{
	bool known;
	struct record slurmd = {0};
	struct stat own, its;

	if (stat("/proc/self/ns/mnt", &own) < 0)
		return fault_set(fault, "cannot read the mount namespace of gojail-launcher: %s", strerror(errno));
	known = read_slurmd(node, &slurmd) == 0;
	scoped_fd process = known ? open_slurmd(&slurmd) : -1;
	scoped_fd mounts = process < 0 ? -1 : open_namespace(process, "mnt");
	scoped_fd root = process < 0 ? -1 : openat(process, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (process < 0)
		return stay_here(node, known, &own, fault);
	if (enter_others(process, "slurmd", fault) < 0)
		return -1;
	if (mounts >= 0 && fstat(mounts, &its) == 0 && is_same_file(&own, &its))
		return 0;
	if (mounts < 0 || root < 0 || setns(mounts, CLONE_NEWNS) < 0 || fchdir(root) < 0 || chroot(".") < 0 ||
	    chdir("/") < 0)
		return fault_set(fault, "cannot enter the mount namespace of slurmd: %s", strerror(errno));
	return 0;
}
