/* SPDX-License-Identifier: Apache-2.0 */
#include "session/jobs.h"

#include "session/adoption.h"

#include "common/fd.h"
#include "common/job_find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reports whether a word is the number of a job, unlike the name of a `gojail run`. */
static bool is_job(const char *word)
{
	size_t digits = strspn(word, "0123456789");

	return digits > 0 && digits <= 10 && !word[digits];
}

/* Opens the directory of a job that belongs to the user and has not ended. Returns -1 if there is none. */
static int open_job(const struct node *node, const char *job, uid_t uid)
{
	char path[GOJAIL_PATH_MAX + 64];
	int dir;

	snprintf(path, sizeof(path), "%s/" GOJAIL_ENDED "/%s", node->state, job);
	if (access(path, F_OK) == 0)
		return -1;
	dir = job_open(node, job);
	if (dir >= 0 && !job_has_owner(dir, uid))
		close_fd(&dir);
	return dir;
}

/* Replaces the choice by the newest sandbox of a job, if that is newer. */
static void choose_of_job(struct choice *choice, const struct node *node, const char *job, uid_t uid)
{
	int fd = open_job(node, job, uid);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct record holder;
	struct stat st;

	if (!dir) {
		close_fd(&fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		int64_t made;

		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(choice->name) ||
		    record_find(fd, entry->d_name, &holder) < 0 || holder.uid != uid || fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		/* The start of the holder does not count: the holder may have been a spare for long. */
		made = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		if (made <= choice->made)
			continue;
		choice->made = made;
		snprintf(choice->job, sizeof(choice->job), "%s", job);
		snprintf(choice->title, sizeof(choice->title), "job %.16s", job);
		snprintf(choice->name, sizeof(choice->name), "%s", entry->d_name);
		snprintf(choice->jail, sizeof(choice->jail), "%.*s", (int)strcspn(entry->d_name, "+"), entry->d_name);
	}
	closedir(dir);
}

int jobs_choose(struct choice *choice, const struct node *node, uid_t uid, const char *wanted, struct fault *fault)
{
	char path[GOJAIL_PATH_MAX + 16], adopting[16];
	struct dirent *entry;
	DIR *dir;

	*choice = (struct choice){0};
	if (wanted) {
		if (!is_job(wanted))
			return fault_set(fault, "SLURM_JOB_ID: \"%s\" is not the number of a job", wanted);
		choose_of_job(choice, node, wanted, uid);
		if (choice->made)
			return 1;
		return fault_set(fault, "SLURM_JOB_ID: job %s has no sandbox of yours on this node; choose another job, or leave it out for the newest", wanted);
	}
	if (adoption_find_job(adopting, sizeof(adopting)) && is_job(adopting)) {
		choose_of_job(choice, node, adopting, uid);
		if (choice->made)
			return 1;
	}
	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS, node->state);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : fault_set(fault, "cannot read %s: %s; ask your administrator", path, strerror(errno));
	while ((entry = readdir(dir)))
		if (is_job(entry->d_name))
			choose_of_job(choice, node, entry->d_name, uid);
	closedir(dir);
	return choice->made ? 1 : 0;
}

/* Reports whether the user is root in a sandbox of that name, see sandbox_name. */
static bool has_root(const char *name)
{
	return strchr(name, '+') && (strtoul(name + strlen(name) - 1, NULL, 16) & 6);
}

int jobs_open(struct sandbox *sandbox, const struct choice *choice, const struct node *node, uid_t uid, struct fault *fault)
{
	scoped_fd dir = open_job(node, choice->job, uid);
	struct record holder;

	if (dir < 0 || sandbox_open_recorded(sandbox, dir, choice->name, &holder, fault) < 0 || holder.uid != uid)
		return fault_set(fault, "job %s has just ended", choice->job);
	if (!has_root(choice->name))
		return 0;
	sandbox->user = record_get_fd(&holder, sandbox->holder, GOJAIL_USER_FD);
	return sandbox->user >= 0 ? 0 : fault_set(fault, "cannot open the user namespace of job %s: %s", choice->job, strerror(errno));
}
