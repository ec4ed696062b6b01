/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SPANK plugin that does in its hooks what container plugins such as pyxis do:
 * srun --box=DIR shows DIR at /srv, in a user and a mount namespace that the task
 * has a helper make and then joins. A program of the user's runs in user_init and
 * in task_exit, and notes in ~/hooks which files it sees.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

SPANK_PLUGIN(box, 1)

static char box[256];

static int set_box(int value, const char *text, int remote)
{
	(void)value;
	(void)remote;
	snprintf(box, sizeof(box), "%s", text);
	return 0;
}

int slurm_spank_init(spank_t sp, int argc, char **argv)
{
	struct spank_option option = {"box", "DIR", "show DIR at /srv, in namespaces of the step's own", 1, 0, set_box};

	(void)argc;
	(void)argv;
	return spank_option_register(sp, &option) == ESPANK_SUCCESS ? 0 : -1;
}

/* Runs the user's program that notes where it is. */
static int note(spank_t sp, const char *hook)
{
	char script[256];
	uid_t uid;
	gid_t gid;

	if (!box[0] || spank_context() != S_CTX_REMOTE)
		return 0;
	if (spank_get_item(sp, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_GID, &gid) != ESPANK_SUCCESS)
		return -1;
	snprintf(script, sizeof(script), "echo %s >>/home/alice/hooks", hook);
	pid_t child = fork();
	if (child == 0) {
		char *const args[] = {"sh", "-c", script, NULL};

		if (seteuid(0) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
			_exit(1);
		execv("/bin/sh", args);
		_exit(1);
	}
	return waitpid(child, NULL, 0) == child ? 0 : -1;
}

int slurm_spank_user_init(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return note(sp, "user_init");
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t length = (ssize_t)strlen(text), done = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return done == length ? 0 : -1;
}

/* The helper: it makes the namespaces and stands still until the task has joined them. */
static void hold(void)
{
	char users[64], groups[64];

	snprintf(users, sizeof(users), "%u %u 1", (unsigned)getuid(), (unsigned)getuid());
	snprintf(groups, sizeof(groups), "%u %u 1", (unsigned)getgid(), (unsigned)getgid());
	/* Others start a program here, which makes /proc/self the user's again (proc(5)). */
	if (prctl(PR_SET_DUMPABLE, 1) < 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
	    write_file("/proc/self/uid_map", users) < 0 || write_file("/proc/self/setgroups", "deny") < 0 ||
	    write_file("/proc/self/gid_map", groups) < 0)
		_exit(errno);
	if (mount(box, "/srv", NULL, MS_BIND | MS_REC, NULL) < 0)
		_exit(errno);
	raise(SIGSTOP);
	_exit(0);
}

static int join(pid_t helper, const char *name, int type)
{
	char path[64];
	int fd, result;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)helper, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	result = fd < 0 ? -1 : setns(fd, type);
	if (result < 0)
		slurm_error("box: cannot join the %s namespace of the helper: %s", name, strerror(errno));
	if (fd >= 0)
		close(fd);
	return result;
}

int slurm_spank_task_init(spank_t sp, int argc, char **argv)
{
	int status = 0, result;

	(void)sp;
	(void)argc;
	(void)argv;
	if (!box[0])
		return 0;
	pid_t helper = fork();
	if (helper == 0)
		hold();
	if (waitpid(helper, &status, WUNTRACED) != helper || !WIFSTOPPED(status)) {
		slurm_error("box: the helper ended: %s", strerror(WEXITSTATUS(status)));
		return -1;
	}
	result = join(helper, "user", CLONE_NEWUSER) < 0 || join(helper, "mnt", CLONE_NEWNS) < 0 || chdir("/srv") < 0 ?
			 -1 :
			 0;
	kill(helper, SIGCONT);
	waitpid(helper, NULL, 0);
	return result;
}

int slurm_spank_task_exit(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return note(sp, "task_exit");
}
