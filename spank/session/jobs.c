/* SPDX-License-Identifier: Apache-2.0 */
#include "session/jobs.h"

#include "common/allocation.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/job.h"
#include "common/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reports whether a word is the number of a job, unlike the name of a `gojail run`. */
static bool is_job(const char *word)
{
	size_t digits = strspn(word, "0123456789");

	return digits > 0 && digits <= 10 && !word[digits];
}

/* Reports whether the end of the job was tried, and failed. */
static bool has_ended(const struct node *node, const char *job)
{
	char path[GOJAIL_PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/" GOJAIL_ENDED "/%s", node->state, job);
	return access(path, F_OK) == 0;
}

/* Opens the directory of a job that belongs to the user and has not ended. Returns -1 if there is none. */
static int open_running_job(const struct node *node, const char *job, uid_t uid)
{
	return has_ended(node, job) ? -1 : job_open_own(node, job, uid);
}

static void set_choice(struct choice *choice, const char *job, const char *name, const char *jail, int64_t made)
{
	choice->made = made;
	snprintf(choice->job, sizeof(choice->job), "%s", job);
	snprintf(choice->title, sizeof(choice->title), "job %.16s", job);
	snprintf(choice->name, sizeof(choice->name), "%s", name);
	snprintf(choice->jail, sizeof(choice->jail), "%s", jail);
}

/* Replaces the choice by a job on which no step has begun here, if it is newer, and its sandbox would be of the jail;
 * jail may be NULL: any. */
static void choose_allocated(struct choice *choice, const struct node *node, const struct site *site, const char *job,
			     const char *jail, uid_t uid)
{
	static struct allocation allocation;
	struct fault ignored = {0};

	if (allocation_read(node, job, &allocation) < 0 || allocation.uid != uid || allocation.made <= choice->made ||
	    has_ended(node, job) || step_options_complete(&allocation.options, site, &ignored) < 0 ||
	    step_options_are_none(&allocation.options) || (jail && strcmp(jail, allocation.options.jail)))
		return;
	set_choice(choice, job, "", allocation.options.jail, allocation.made);
}

/* Replaces the choice by the newest sandbox of a job in the jail, if that is newer; jail may be NULL: any. */
static void choose_of_job(struct choice *choice, const struct node *node, const struct site *site, const char *job,
			  const char *jail, uid_t uid)
{
	int fd = open_running_job(node, job, uid);
	scoped_list *dir = list_directory(fd);
	struct record holder;
	bool any = false;
	struct stat st;

	for (const char *name; (name = job_next_sandbox(dir));) {
		char of[GOJAIL_NAME_MAX + 1];
		int64_t made;

		if (record_find(fd, name, &holder) < 0) {
			if (!record_is_foreign(&holder))
				continue;
			any = true;
			snprintf(choice->foreign, sizeof(choice->foreign), "%s", job);
			continue;
		}
		any = true;
		if (strlen(name) >= sizeof(choice->name) || holder.uid != uid ||
		    fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		/* The start of the holder does not count: the holder may have been a spare for long. */
		made = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		sandbox_write_jail(name, of, sizeof(of));
		if (made > choice->made && sandbox_is_of_jail(name, jail))
			set_choice(choice, job, name, of, made);
	}
	if (!any)
		choose_allocated(choice, node, site, job, jail, uid);
}

/*
 * Chooses a sandbox of that job alone: a session in the cgroup of one job must not be in the sandbox of another one.
 * Returns 1, 0 if the job has none of the user's, or -1 with a fault if it has none in the jail.
 */
static int choose_in_job(struct choice *choice, const struct node *node, const struct site *site, const char *job,
			 const char *jail, uid_t uid, struct fault *fault)
{
	choose_of_job(choice, node, site, job, jail, uid);
	if (choice->made || !jail)
		return choice->made ? 1 : 0;
	choose_of_job(choice, node, site, job, NULL, uid);
	if (!choice->made)
		return 0;
	return fault_set(fault,
			 "SLURM_JAIL: job %s is not in jail \"%s\" on this node, but in jail \"%s\"; choose that, or "
			 "leave it out",
			 job, jail, choice->jail);
}

/* Replaces the choice by the newest sandbox of all jobs that a directory of the state directory lists. Returns 0, or -1
 * with a fault. */
static int choose_of_all(struct choice *choice, const struct node *node, const struct site *site, const char *directory,
			 const char *jail, uid_t uid, struct fault *fault)
{
	char path[GOJAIL_PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/%s", node->state, directory);
	scoped_list *dir = opendir(path);
	if (!dir)
		return errno == ENOENT ?
			       0 :
			       fault_set(fault, "cannot read %s: %s; ask your administrator", path, strerror(errno));
	for (const char *job; (job = next_name(dir));)
		if (is_job(job))
			choose_of_job(choice, node, site, job, jail, uid);
	return 0;
}

int jobs_fault_foreign(const struct choice *choice, struct fault *fault)
{
	return fault_set(
		fault,
		"another version was installed on this node while your job %s runs, and no session can enter its "
		"sandbox; its running steps go on: start another job for a session",
		choice->foreign);
}

int jobs_choose(struct choice *choice, const struct node *node, const struct site *site, uid_t uid, const char *wanted,
		const char *jail, struct fault *fault)
{
	static const char *const directories[] = {GOJAIL_JOBS, GOJAIL_ALLOCATED};
	char adopting[16];
	int found;

	*choice = (struct choice){0};
	if (jail && !jail[0])
		jail = NULL;
	if (jail && strlen(jail) > GOJAIL_NAME_MAX)
		return fault_set(fault, "SLURM_JAIL: the name of a jail has at most %d characters", GOJAIL_NAME_MAX);
	if (wanted) {
		if (!is_job(wanted))
			return fault_set(fault, "SLURM_JOB_ID: \"%s\" is not the number of a job", wanted);
		found = choose_in_job(choice, node, site, wanted, jail, uid, fault);
		if (found)
			return found;
		if (choice->foreign[0])
			return jobs_fault_foreign(choice, fault);
		return fault_set(fault,
				 "SLURM_JOB_ID: job %s has no sandbox of yours on this node; choose another job, or "
				 "leave it out for the newest",
				 wanted);
	}
	if (adoption_find_job(adopting, sizeof(adopting)) && is_job(adopting)) {
		found = choose_in_job(choice, node, site, adopting, jail, uid, fault);
		if (found)
			return found;
	}
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		if (choose_of_all(choice, node, site, directories[i], jail, uid, fault) < 0)
			return -1;
	if (!choice->made && jail && choice->foreign[0])
		return jobs_fault_foreign(choice, fault);
	if (!choice->made && jail)
		return fault_set(fault,
				 "SLURM_JAIL: you have no job in jail \"%s\" on this node; choose another jail, or "
				 "leave it out for the newest",
				 jail);
	return choice->made ? 1 : 0;
}

int jobs_open(struct sandbox *sandbox, const struct choice *choice, const struct node *node, uid_t uid,
	      struct fault *fault)
{
	scoped_fd dir = open_running_job(node, choice->job, uid);
	struct record holder;

	if (dir < 0 || sandbox_open_recorded(sandbox, dir, choice->name, &holder, fault) < 0 || holder.uid != uid)
		return fault_set(fault, "job %s has just ended", choice->job);
	return sandbox_open_user(sandbox, choice->name, &holder, fault);
}

int allocated_build(struct choice *choice, const struct node *node, const struct site *site,
		    const struct caller *caller, struct fault *fault)
{
	static struct allocation allocation;
	struct sandbox_spec spec = {.user = caller_user(caller), .gpus = allocation.gpus, .nics = GOJAIL_NICS_UNKNOWN};
	static struct jail jail;

	if (allocation_read(node, choice->job, &allocation) < 0 || allocation.uid != caller->uid)
		return fault_set(fault, "job %s has just ended", choice->job);
	memcpy(spec.job, choice->job, sizeof(choice->job));
	spec.allocated = allocation.made;
	spec.user.gid = allocation.gid;
	if (step_options_complete(&allocation.options, site, fault) < 0 ||
	    step_options_apply(&allocation.options, site, &jail, &spec, fault) < 0)
		return -1;
	sandbox_name(choice->name, &jail, &spec);
	return sandbox_launch("session", 0, node, jail.name, &spec, clock_ms() + site->deadline_ms, fault);
}
