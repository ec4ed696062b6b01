/* SPDX-License-Identifier: Apache-2.0 */
/* munge.c: shows sandboxes that have outlived munged its new socket; or slurmd's in its place, which creates a new
 * socket at its start, too. */
#include "common/clock.h"
#include "common/fd.h"
#include "common/job.h"
#include "common/lock.h"
#include "common/record.h"
#include "common/storage.h"
#include "launcher/child.h"
#include "launcher/verbs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

/* One launcher at a time: of two, each would mount a socket over the other's, and the older one might be the last. */
void munge_refresh(const struct sandbox *sandbox, const struct node *node, const struct jail *jail, const char *job,
		   int64_t until)
{
	struct fault fault = {0};

	if (job_has_munge(sandbox, jail))
		return;
	scoped_fd dir = job_open(node, job);
	scoped_fd lock = dir < 0 ? -1 : lock_until(dir, GOJAIL_LOCK, until, "the sandbox", &fault);
	if (lock >= 0 && (job_has_munge(sandbox, jail) || job_show_munge(sandbox, jail, &fault) == 0))
		return;
	syslog(LOG_WARNING, "gojail: job %s: %s", job, fault.text[0] ? fault.text : "its sandbox has ended");
}

/* Says why a sandbox keeps the socket that it has. */
static void log_failure(const char *job, const char *name, const char *why)
{
	syslog(LOG_WARNING, "gojail: job %s: %s does not get munge's new socket: %s", job, name, why);
}

/* The record of a sandbox of another version of gojail is not read: that stays as it is. One of --jail-root=range has
 * no munge. */
static void refresh_recorded(const struct node *node, const struct site *site, const char *job, int dir,
			     const char *name)
{
	static const struct user root = {0}; /* root may use all jails */
	static struct jail jail;
	struct sandbox sandbox = SANDBOX_NONE;
	struct fault fault = {0};
	struct record holder;
	char of[GOJAIL_NAME_MAX + 1];

	if (sandbox_is_range(name))
		return;
	sandbox_write_jail(name, of, sizeof(of));
	if (site_find_jail(site, of, &root, &jail, &fault) < 0 ||
	    !jail.munge.path[0]) /* it is not a jail any more, or has no Slurm */
		return;
	sandbox.holder = record_open(dir, name, &holder);
	if (sandbox.holder < 0)
		return;
	sandbox.mnt = record_get_fd(&holder, sandbox.holder, GOJAIL_MNT_FD);
	sandbox.root = record_get_fd(&holder, sandbox.holder, GOJAIL_ROOT_FD);
	/* Without a key, storage_await_job does not replace a zygote that is stuck: only steps do it. */
	jail.key[0] = '\0';
	if (sandbox.mnt >= 0 && sandbox.root >= 0 &&
	    storage_await_job(node, &jail, job, name, clock_ms() + site->deadline_ms, &fault) == 0)
		munge_refresh(&sandbox, node, &jail, job, clock_ms() + site->deadline_ms);
	else if (fault.text[0])
		log_failure(job, name, fault.text);
	sandbox_close(&sandbox);
}

/* Refreshes a sandbox in a child, which is killed where it hangs: not all storage below a path can be asked before. */
static void refresh_in_child(const struct node *node, const struct site *site, const char *job, int dir,
			     const char *name)
{
	struct fault fault = {0};
	struct child child;
	int socket;

	switch (child_fork(&child, &socket)) {
	case -1:
		fault_set(&fault, "cannot fork: %s", strerror(errno));
		log_failure(job, name, fault.text);
		return;
	case 0:
		refresh_recorded(node, site, job, dir, name);
		_exit(0);
	}
	/* It has one deadline for the storage, one for the lock, and one for the rest. */
	if (!clock_await(socket, clock_ms() + 3 * (int64_t)site->deadline_ms))
		log_failure(job, name, "its storage hangs");
	child_end(&child, &socket);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		; /* process 1 of a container may reap none */
}

static void refresh_job(const struct node *node, const struct site *site, const char *job)
{
	scoped_list *dir = job_open_list(node, job);

	for (const char *name; (name = job_next_sandbox(dir));)
		refresh_in_child(node, site, job, dirfd(dir), name);
}

static void refresh_all(const struct node *node)
{
	char path[GOJAIL_PATH_MAX + 16];
	struct fault fault = {0};
	struct site site = {0};

	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS, node->state);
	scoped_list *dir = opendir(path);
	if (!dir)
		return; /* no job has had a jail here */
	if (site_open(&site, node, &fault) < 0)
		syslog(LOG_WARNING, "gojail: jobs that are running do not get munge's new socket: %s", fault.text);
	else
		for (const char *job; (job = next_name(dir));)
			if (job[0] != '.' && !job_is_run(job))
				refresh_job(node, &site, job);
	site_close(&site);
}

void munge_start_refresh(const struct node *node)
{
	pid_t child = fork();

	if (child < 0)
		syslog(LOG_WARNING, "gojail: jobs that are running do not get munge's new socket: cannot fork: %s",
		       strerror(errno));
	if (child != 0)
		return;
	close(GOJAIL_REPLY_FD); /* the reply is the parent's to give */
	refresh_all(node);
	_exit(0);
}
