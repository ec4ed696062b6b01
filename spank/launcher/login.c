/* SPDX-License-Identifier: Apache-2.0 */
/*
 * login.c: the sandbox of a user's sessions on a login node: STATE/jobs/login-UID, which is otherwise like a job's. No
 * end of a job removes it: a process that watches it does.
 */
#include "common/clock.h"
#include "common/fd.h"
#include "common/launch.h"
#include "common/lock.h"
#include "common/record.h"
#include "common/sandbox.h"
#include "launcher/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#define PROCESS_NAME "gojail-watcher"

/* A sweep holds the watcher's lock for a moment, to see whether there is a watcher. */
#define LOCK_MS 1000

/* Runs the launcher's verb logout, which ends the sandbox unless it is used. Returns 0, or -1 with a fault. */
static int log_out(const struct node *node, const char *name, int64_t until, struct fault *fault)
{
	struct launch launch;

	launch_prepare(&launch, node, "logout", until);
	launch_add_word(&launch, "job=%s", name);
	return launch_run(&launch, node, until, fault);
}

/*
 * Reports whether the scratch directory has files of the sandbox, and the state directory does not know whose: the node
 * was booted. The directory of the sandbox alone says nothing: an attempt to remove the files, which failed, leaves it.
 */
static bool has_leftover(const struct node *node, const struct site *site, const char *name)
{
	char state[GOJAIL_PATH_MAX + 64], scratch[GOJAIL_PATH_MAX + 64];

	snprintf(state, sizeof(state), "%s/" GOJAIL_JOBS "/%s/" GOJAIL_OWNER, node->state, name);
	snprintf(scratch, sizeof(scratch), "%s/" GOJAIL_JOBS "/%s", site->scratch, name);
	return access(state, F_OK) < 0 && access(scratch, F_OK) == 0;
}

/* Reports whether a process holds a sandbox of the user's sessions that another version of gojail has built. No session
 * can enter that. */
static bool has_foreign_holder(const struct node *node, const char *name)
{
	scoped_list *dir = job_open_list(node, name);
	struct record holder;

	for (const char *sandbox; (sandbox = job_next_sandbox(dir));)
		if (record_read(dirfd(dir), sandbox, &holder) < 0 && record_is_foreign(&holder))
			return true;
	return false;
}

int login_prepare(const struct node *node, struct site *site, const char *name, uid_t uid, int64_t until,
		  struct fault *fault)
{
	struct fault why = {0};
	char expected[32];

	snprintf(expected, sizeof(expected), GOJAIL_LOGIN "%u", (unsigned)uid);
	if (strcmp(name, expected))
		return fault_set(fault, "login needs job=%s", expected);
	if (site_open(site, node, fault) < 0)
		return -1;
	if (!site->login.linger_ms)
		return fault_set(fault, "%s is not a login node: [login] of gojail.toml does not name it", node->name);
	if (!has_leftover(node, site, name) && !has_foreign_holder(node, name))
		return 0;
	if (log_out(node, name, until, &why) < 0 || has_leftover(node, site, name))
		return fault_set(fault,
				 "your earlier sandbox on this node cannot be removed: %s; ask your administrator",
				 why.text[0] ? why.text : "it is in use");
	if (has_foreign_holder(node, name))
		return fault_set(fault,
				 "processes of yours on this node are in a sandbox of another version of gojail; end "
				 "your other sessions "
				 "and connect again, or ask your administrator to run: loginctl terminate-user %u",
				 (unsigned)uid);
	clean_start(node, name, "");
	return 0;
}

static bool is_removed(int dir)
{
	struct stat st;

	return fstat(dir, &st) < 0 || st.st_nlink == 0;
}

static void pause_for(int ms)
{
	for (int64_t until = clock_ms() + ms; clock_left(until) > 0;)
		clock_pause_ms(clock_left(until) < 999 ? clock_left(until) : 999);
}

/* Waits until no session has its lock. Returns 0, or -1 if it cannot be waited for now. */
static int await_last_session(int dir)
{
	scoped_fd fd = openat(dir, GOJAIL_SESSIONS, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -1;
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -1;
	return 0;
}

/* Returns when the last session began, on the clock of files; 0 if that is not known. */
static int64_t find_last_begin(int dir)
{
	struct stat st;

	return fstatat(dir, GOJAIL_SESSIONS, &st, AT_SYMLINK_NOFOLLOW) < 0 ?
		       0 :
		       (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

/* Ends the sandbox when no session has been in it for that long, and returns. */
static void watch_sandbox(const struct node *node, const struct site *site, const char *name, int dir)
{
	while (!is_removed(dir)) {
		struct fault fault = {0};
		int64_t began;

		if (await_last_session(dir) < 0) {
			pause_for(1000); /* the state directory is full, or the sandbox has been removed */
			continue;
		}
		began = find_last_begin(dir);
		pause_for(site->login.linger_ms);
		if (is_removed(dir) || lock_is_held(dir, GOJAIL_SESSIONS, LOCK_EX) || find_last_begin(dir) != began)
			continue;
		if (log_out(node, name, clock_ms() + site->deadline_ms, &fault) < 0)
			syslog(LOG_ERR, "gojail: the sandbox %s could not be removed, which is tried again: %s", name,
			       fault.text);
		else if (is_removed(dir))
			clean_start(node, name, "");
	}
}

int login_watch(const struct node *node, const struct site *site, const char *name, struct fault *fault)
{
	struct fault other = {0};
	pid_t child;

	scoped_fd dir = job_open(node, name);
	if (dir < 0)
		return errno == ENOENT ? 0 :
					 fault_set(fault, "cannot open %s/" GOJAIL_JOBS "/%s: %s", node->state, name,
						   strerror(errno));
	child = fork();
	if (child < 0)
		return fault_set(fault, "cannot start the process that ends the sandbox: %s", strerror(errno));
	if (child > 0)
		return 0;
	close(GOJAIL_REPLY_FD); /* the reply is the parent's to give */
	prctl(PR_SET_NAME, PROCESS_NAME);
	scoped_fd lock = lock_until(dir, GOJAIL_WATCHER, clock_ms() + LOCK_MS, "the watcher", &other);
	if (lock >= 0)
		watch_sandbox(node, site, name, dir);
	_exit(0);
}
