/* SPDX-License-Identifier: Apache-2.0 */
/*
 * login.c: the sandbox of a user's sessions on a login node: one for all of them. gojail-launcher builds it, in a
 * cgroup of its own and under the locks that building takes, and ends it a while after the last session
 * (launcher/login.c).
 */
#include "common/clock.h"
#include "common/fd.h"
#include "common/job.h"
#include "common/lock.h"
#include "session/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* A sandbox may be ended between its start and the session's lock, if linger is short. */
#define ATTEMPTS 5

int login_choose(struct choice *choice, const struct site *site, const struct caller *caller, const char *account,
		 struct jail *jail, struct fault *fault)
{
	const char *wanted = caller_variable(caller, "SLURM_JAIL");
	const struct user user = caller_user(caller);
	int found;

	*choice = (struct choice){.made = 1};
	found = site_find_login(site, &user, account, choice->jail, sizeof(choice->jail), fault);
	if (found <= 0)
		return found;
	if (wanted && strlen(wanted) > GOJAIL_NAME_MAX)
		return fault_set(fault, "SLURM_JAIL: the name of a jail has at most %d characters", GOJAIL_NAME_MAX);
	if (wanted && wanted[0])
		snprintf(choice->jail, sizeof(choice->jail), "%s", wanted);
	if (site_find_jail(site, choice->jail, &user, jail, fault) < 0)
		return -1;
	snprintf(choice->job, sizeof(choice->job), GOJAIL_LOGIN "%u", (unsigned)caller->uid);
	snprintf(choice->name, sizeof(choice->name), "%s", choice->jail);
	snprintf(choice->title, sizeof(choice->title), "the sandbox of your sessions");
	return 1;
}

/* Builds the sandbox by a launcher. Returns 0, or -1 with a fault. */
static int build_sandbox(const struct choice *choice, const struct node *node, const struct caller *caller,
			 int64_t until, struct fault *fault)
{
	struct sandbox_spec spec = {.user = caller_user(caller)};

	memcpy(spec.job, choice->job, sizeof(choice->job));
	return sandbox_launch("login", 0, node, choice->jail, &spec, until, fault);
}

/* Takes a shared lock on the sandbox in that directory. Returns it, or -1 if the sandbox has been ended meanwhile, or
 * with a fault. */
static int lock_sandbox(int dir, int64_t until, struct fault *fault)
{
	scoped_fd fd = openat(dir, GOJAIL_SESSIONS, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return -1;
	if (fd < 0)
		return fault_set(fault,
				 "cannot open the lock of your sandbox: %s; is the state directory full or read-only?",
				 strerror(errno));
	if (lock_wait(fd, LOCK_SH, 1, until) < 0)
		return fault_set(fault, "your earlier sandbox is still being removed; try again");
	if (fstat(fd, &st) < 0 || st.st_nlink == 0)
		return -1;
	futimens(fd, NULL); /* the watcher waits anew from the end of this session */
	return take_fd(&fd);
}

int login_open(struct sandbox *sandbox, const struct choice *choice, const struct node *node, const struct site *site,
	       const struct caller *caller, struct fault *fault)
{
	int64_t until = clock_ms() + site->deadline_ms;
	struct fault ended = {0};

	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		scoped_fd dir = job_open_own(node, choice->job, caller->uid);
		int lock = dir < 0 ? -1 : lock_sandbox(dir, until, fault);
		struct record holder;

		if (fault->text[0])
			return -1;
		if (lock >= 0 && sandbox_open_recorded(sandbox, dir, choice->name, &holder, &ended) == 0 &&
		    holder.uid == caller->uid &&
		    (sandbox->root = record_get_fd(&holder, sandbox->holder, GOJAIL_ROOT_FD)) >= 0 &&
		    (attempt > 0 || lock_is_held(dir, GOJAIL_WATCHER, LOCK_SH) ||
		     build_sandbox(choice, node, caller, until, fault) == 0))
			return lock;
		sandbox_close(sandbox);
		close_fd(&lock);
		if (fault->text[0])
			return -1;
		if (build_sandbox(choice, node, caller, until, fault) < 0)
			return -1;
	}
	return fault_set(fault, "the sandbox of your sessions ended each time it was built; ask your administrator to "
				"run: gojail check");
}

void login_refresh_munge(const struct sandbox *sandbox, const struct choice *choice, const struct node *node,
			 const struct caller *caller, const struct jail *jail, int64_t until, struct fault *notice)
{
	struct fault fault = {0};

	if (!job_has_munge(sandbox, jail) && build_sandbox(choice, node, caller, until, &fault) < 0)
		fault_set(notice, "Slurm's commands may fail here, as munged was started again: %.900s", fault.text);
}
