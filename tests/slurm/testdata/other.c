/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin of Slurm whose lines before and after gojail's say "before" and "after": in a job whose environment has
 * OTHER="POSITION HOOK DEED", slurmstepd or the task does the deed in that hook, as plugins of sites do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

SPANK_PLUGIN(other, 1)

#define OWN "/opt/other/own" /* a directory of the site's, which it shows elsewhere */

static int unshare_mounts(spank_t sp)
{
	(void)sp;
	return unshare(CLONE_NEWNS);
}

/* A /tmp of the job's own, as plugins for private directories make it. */
static int make_private_tmp(spank_t sp)
{
	(void)sp;
	return unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ?
		       -1 :
		       mount(OWN, "/tmp", NULL, MS_BIND, NULL);
}

/* A mount in the namespace that the process is in: the plugin has none of its own. */
static int mount_here(spank_t sp)
{
	(void)sp;
	return mount(OWN, "/mnt", NULL, MS_BIND, NULL);
}

/* Joins a namespace that a child has made, as plugins for containers do. */
static int join_mounts(spank_t sp)
{
	char path[64];
	int ready[2], fd, result;
	char byte = 0;
	pid_t child;

	(void)sp;
	if (pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		if (unshare(CLONE_NEWNS) == 0 && write(ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	result = read(ready[0], &byte, 1) == 1 ? 0 : -1;
	close(ready[0]);
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)child);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (result == 0)
		result = fd < 0 || unshare(CLONE_FS) < 0 ? -1 : setns(fd, CLONE_NEWNS);
	if (fd >= 0)
		close(fd);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return result;
}

static int change_root(spank_t sp)
{
	(void)sp;
	return mkdir("/opt/other/top", 0755) < 0 && errno != EEXIST ? -1 : chroot("/opt/other/top");
}

static int change_directory(spank_t sp)
{
	(void)sp;
	return chdir("/opt");
}

static int set_mask(spank_t sp)
{
	(void)sp;
	umask(027);
	return 0;
}

static int set_limit(spank_t sp)
{
	struct rlimit files = {200, 200};

	(void)sp;
	return setrlimit(RLIMIT_NOFILE, &files);
}

static int set_variable(spank_t sp) { return spank_setenv(sp, "OTHER_SET", "yes", 1) == ESPANK_SUCCESS ? 0 : -1; }

/* A helper that is left behind, such as one that renews tickets. */
static int leave_process(spank_t sp)
{
	pid_t child = fork();

	(void)sp;
	if (child == 0) {
		setsid();
		syscall(SYS_close_range, 0, ~0u, 0);
		prctl(PR_SET_NAME, "other-left");
		sleep(60);
		_exit(0);
	}
	return child < 0 ? -1 : 0;
}

static int open_files(spank_t sp)
{
	(void)sp;
	for (int i = 0; i < 20; i++)
		if (open(OWN "/file", O_RDONLY) < 0)
			return -1;
	return 0;
}

/* As a program does that closes whatever it was left; the first numbers are Slurm's. */
static int close_files(spank_t sp)
{
	(void)sp;
	return (int)syscall(SYS_close_range, 3, ~0u, 0);
}

static int forbid_privileges(spank_t sp)
{
	(void)sp;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int make_undumpable(spank_t sp)
{
	(void)sp;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static int ignore_children(spank_t sp)
{
	(void)sp;
	return signal(SIGCHLD, SIG_IGN) == SIG_ERR ? -1 : 0;
}

static int block_signals(spank_t sp)
{
	sigset_t set;

	(void)sp;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return sigprocmask(SIG_BLOCK, &set, NULL);
}

static void *wait_long(void *argument)
{
	for (;;)
		pause();
	return argument;
}

static int start_thread(spank_t sp)
{
	pthread_t thread;

	(void)sp;
	return pthread_create(&thread, NULL, wait_long, NULL) ? -1 : 0;
}

static const struct {
	const char *name;
	int (*do_it)(spank_t sp);
} deeds[] = {
	{"nothing", NULL},
	{"unshare", unshare_mounts},
	{"tmp", make_private_tmp},
	{"mount", mount_here},
	{"setns", join_mounts},
	{"chroot", change_root},
	{"chdir", change_directory},
	{"umask", set_mask},
	{"rlimit", set_limit},
	{"setenv", set_variable},
	{"fork", leave_process},
	{"open", open_files},
	{"close", close_files},
	{"nnp", forbid_privileges},
	{"undumpable", make_undumpable},
	{"sigchld", ignore_children},
	{"sigmask", block_signals},
	{"thread", start_thread},
};

static int act(spank_t sp, const char *hook, int argc, char **argv)
{
	char position[16], wanted[32], deed[32], text[128];

	if (spank_context() != S_CTX_REMOTE || argc < 1 ||
	    spank_getenv(sp, "OTHER", text, sizeof(text)) != ESPANK_SUCCESS ||
	    sscanf(text, "%15s %31s %31s", position, wanted, deed) != 3 || strcmp(position, argv[0]) ||
	    strcmp(wanted, hook))
		return 0;
	for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++) {
		if (strcmp(deeds[i].name, deed))
			continue;
		slurm_debug("other: %s", text);
		if (deeds[i].do_it && deeds[i].do_it(sp) < 0)
			slurm_error("other: %s: %s", text, strerror(errno));
		return 0;
	}
	slurm_error("other: no deed %s", deed);
	return -1;
}

#define HOOK(name)                                                                                                     \
	int slurm_spank_##name(spank_t sp, int argc, char **argv) { return act(sp, #name, argc, argv); }

HOOK(init)
HOOK(init_post_opt)
HOOK(user_init)
HOOK(task_post_fork)
HOOK(task_init_privileged)
HOOK(task_init)
HOOK(task_exit)
HOOK(exit)
