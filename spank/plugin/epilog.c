/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/epilog.h"

#include "common/allocation.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/launch.h"
#include "common/lock.h"
#include "common/record.h"
#include "common/sandbox.h"
#include "common/scratch.h"
#include "plugin/events.h"

#include <dirent.h>
#include <fcntl.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Kills all holders, then waits for each: a job may have GOJAIL_SANDBOXES_MAX of them. Returns 0 or -1. */
static int end_holders(int job, DIR *dir, int64_t until)
{
	struct record holder;
	const char *name;

	for (int wait = 0; wait <= 1; wait++) {
		rewinddir(dir);
		while ((name = job_next_sandbox(dir))) {
			record_find(job, name, &holder); /* of another version of gojail, too */
			if (record_kill(&holder, wait ? clock_left(until) : 0) < 0 && wait)
				return -1;
		}
	}
	return 0;
}

/* Ends the holders, then removes the scratch directory, then what points to them. Returns 0 or -1. */
static int end_locked(int job, DIR *dir, int64_t until, struct leftover *left)
{
	const char *name;

	if (end_holders(job, dir, until) < 0 || scratch_remove(job, left) < 0)
		return -1;
	rewinddir(dir);
	while ((name = next_name(dir)))
		if (strcmp(name, GOJAIL_LOCK) && unlinkat(job, name, 0) < 0)
			return -1;
	return unlinkat(job, GOJAIL_LOCK, 0);
}

int epilog_end_job(const struct node *node, const char *job, int64_t until, struct leftover *left)
{
	scoped_list *dir = job_open_list(node, job);
	char path[GOJAIL_PATH_MAX + 64];
	struct fault ignored = {0};
	int result = -1;

	if (!dir)
		return -1;
	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s", node->state, job);
	scoped_fd lock = lock_until(dirfd(dir), GOJAIL_LOCK, clock_ms(), "the job", &ignored);
	if (lock >= 0)
		result = end_locked(dirfd(dir), dir, until, left);
	/* It is not empty if a step came meanwhile: the job is that step's now. */
	if (result == 0)
		rmdir(path);
	return result;
}

/* Notes a job whose end failed, for later ones and the sweep. */
static void note_failed(const struct node *node, const char *job)
{
	char path[GOJAIL_PATH_MAX + 64];
	int note = -1;

	/* A process that has just ended the last of them removes the directory. */
	for (int tries = 0; note < 0 && tries < 3; tries++) {
		snprintf(path, sizeof(path), "%s/" GOJAIL_ENDED, node->state);
		mkdir(path, 0700);
		snprintf(path, sizeof(path), "%s/" GOJAIL_ENDED "/%s", node->state, job);
		note = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	}
	close_fd(&note);
}

/* Reports whether the end of some job failed, and it is time to try again (gojail/state/ended.go,
 * gojail/sandbox/sweepended.go). */
static bool is_retry_due(const struct node *node)
{
	char path[GOJAIL_PATH_MAX + 16];
	const char *name;
	struct stat tried;
	time_t ago;

	snprintf(path, sizeof(path), "%s/" GOJAIL_ENDED, node->state);
	scoped_list *dir = opendir(path);
	do
		name = next_name(dir);
	while (name && name[0] == '.');
	if (!name || fstatat(dirfd(dir), GOJAIL_TRIED, &tried, AT_SYMLINK_NOFOLLOW) < 0)
		return name;
	ago = time(NULL) - tried.st_mtime;
	return ago < 0 || ago >= GOJAIL_RETRY_PAUSE; /* < 0: the clock was set back */
}

/* Reports whether the job may have VFs, which Go releases. */
static bool may_have_net(const struct node *node, const char *job)
{
	char path[GOJAIL_PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/" GOJAIL_NET_JOBS "/%s.json", node->state, job);
	return access(path, F_OK) == 0;
}

/*
 * How much of the time that Slurm waits for the end of a job goes to the files that the job left. What takes longer
 * goes on in another process. Slurm waits for GOJAIL_END_MS at most; with a network for GOJAIL_DEFAULT_DEADLINE_MS, as
 * a VF is the next job's as soon as this returns. `gojail check` compares with slurm.conf (gojail/check/epilog.go).
 */
#define LEFTOVER_MS 1000

/* What is told of the rails of a job whose counters could not be read. */
#define NET_UNKNOWN "network_received=- network_sent=-"

void epilog_run(const struct node *node, uint32_t job, uid_t uid, struct fault *fault)
{
	struct leftover left = {.name = ""};
	struct fault failed = {0};
	struct summary summary;
	char path[GOJAIL_PATH_MAX + 32], name[32];
	int64_t begin = clock_ms(), until;
	struct launch launch = {.note = ""};
	bool gone, net;

	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%u", node->state, job);
	snprintf(name, sizeof(name), "%u", job);
	allocation_remove(node, name); /* first: what a session has built is ended below, or by its builder, which looks
					  for this file then */
	summary_read(&summary, node, name, uid);
	net = may_have_net(node, name);
	until = begin + (net ? GOJAIL_DEFAULT_DEADLINE_MS : GOJAIL_END_MS);
	/* Nothing there: it had no jail here. */
	gone = !net && (access(path, F_OK) < 0 || epilog_end_job(node, name, begin + GOJAIL_END_MS / 2, &left) == 0);
	if (!gone) {
		launch_prepare(&launch, node, "epilog", until);
		launch_add_word(&launch, "job=%u", job);
		if (launch_run(&launch, node, until, &failed) < 0)
			note_failed(node, name);
	}
	event_ended(&summary, node, name, net && !launch.note[0] ? NET_UNKNOWN : launch.note, &failed);
	if (failed.text[0])
		fault_set(fault, "%s", failed.text);
	if (!gone || left.name[0] || is_retry_due(node)) {
		clean_start(node, name, left.name[0] ? left.scratch : "");
		scratch_wait(&left, begin + LEFTOVER_MS);
	}
}

void epilog_sweep(const struct node *node)
{
	struct launch launch;

	launch_prepare(&launch, node, "boot", clock_ms() + CLEAN_MS);
	if (launch.untrusted)
		slurm_error("gojail: %s/%s can be changed by others than root: nothing of earlier jobs is removed",
			    node->libdir, launch.untrusted);
	launch_detached(&launch);
}
