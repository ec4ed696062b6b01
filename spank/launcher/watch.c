/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/watch.h"

#include "common/clock.h"
#include "common/hash.h"
#include "launcher/descriptors.h"
#include "launcher/job_stage.h"
#include "launcher/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Hashes or ids of mounts, in ascending order, of a table with that many lines. */
struct mounts {
	uint64_t *list;
	size_t count, lines;
};

#define RECENT_MS 1000
#define MANY 512 /* mounts that take milliseconds to read, such as home directories that are mounted one by one */

static struct mounts remembered[2];
static int64_t read_at; /* clock_ms */

/* Returns a hash of what stays the same in a line of proc_pid_mountinfo(5): id, root of the mount, mount point. */
static uint64_t hash_line(const char *line)
{
	uint64_t hash = HASH_BEGIN;

	for (int field = 1; field <= 5 && *line; line++) {
		if (field != 2 && field != 3)
			hash = hash_add(hash, line, 1);
		field += *line == ' ';
	}
	return hash;
}

static int compare_hashes(const void *a, const void *b)
{
	const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return one < other ? -1 : one > other;
}

/* Returns an empty list with room for all mounts of a table. It is NULL without memory. */
static struct mounts begin_list(char *text)
{
	struct mounts mounts = {NULL, 0, 0};

	for (char *at = text; at && (at = strchr(at, '\n')); at++)
		mounts.lines++;
	mounts.list = mounts.lines ? malloc(mounts.lines * sizeof(*mounts.list)) : NULL;
	return mounts;
}

static void sort_list(struct mounts *mounts)
{
	qsort(mounts->list, mounts->count, sizeof(*mounts->list), compare_hashes);
}

/* Lists the ids of the automounters of a table. Returns 0, or -1. */
static int find_automounters(char *text, struct mounts *mounts)
{
	char *line = text, *end;

	*mounts = begin_list(text);
	for (; mounts->list && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (strstr(line, " - autofs "))
			mounts->list[mounts->count++] = strtoull(line, NULL, 10);
		*end = '\n';
	}
	if (!mounts->list)
		return -1;
	sort_list(mounts);
	return 0;
}

/*
 * Reports whether a mount comes and goes with the node's, of which the template has a copy: one in the node's own
 * directories of the stage, such as that of a login session or a container, or one that an automounter made. If the
 * node removes its directory, the copy is removed, too.
 */
static bool is_passing(const char *line, const struct mounts *automounters, bool stage)
{
	uint64_t parent;
	char top[16]; /* enough for the names of system directories */

	if (sscanf(line, "%*u %" SCNu64 " %*s %*s %15s", &parent, top) != 2)
		return false;
	return (stage && is_system_path(top)) ||
	       bsearch(&parent, automounters->list, automounters->count, sizeof(parent), compare_hashes);
}

/* Hashes the mounts of a table, those that pass only with automounters NULL. It ends each line by a NUL. Returns 0, or
 * -1. */
static int hash_table(char *text, const struct mounts *automounters, bool stage, struct mounts *mounts)
{
	char *line = text, *end;

	*mounts = begin_list(text);
	for (; mounts->list && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0'; /* sscanf(3) looks for the end of its text */
		if (!automounters || !is_passing(line, automounters, stage))
			mounts->list[mounts->count++] = hash_line(line);
	}
	if (!mounts->list)
		return -1;
	sort_list(mounts);
	return 0;
}

/* Reads all mounts of a namespace. Returns 0, or -1. */
static int read_mounts(int fd, struct mounts *mounts)
{
	char *text = mountinfo_read(fd);
	int result = hash_table(text, NULL, false, mounts);

	free(text);
	return result;
}

/* Reads those that must stay. Returns 0, or -1. */
static int read_lasting(int fd, bool stage, struct mounts *mounts)
{
	char *text = mountinfo_read(fd);
	struct mounts automounters;
	int result = find_automounters(text, &automounters) == 0 ? hash_table(text, &automounters, stage, mounts) : -1;

	free(automounters.list);
	free(text);
	return result;
}

/* Reports whether a namespace has all mounts that it had. Additional mounts, such as those of an automounter, do not
 * matter. */
static bool has_all(int fd, const struct mounts *before)
{
	struct mounts now;
	size_t found = 0;

	if (read_mounts(fd, &now) < 0)
		return true; /* out of memory: later, maybe */
	for (size_t i = 0; i < now.count && found < before->count; i++)
		found += now.list[i] == before->list[found];
	free(now.list);
	return found == before->count;
}

int watch_open(int proc, struct fault *fault)
{
	int fd = openat(proc, "self/mountinfo", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? fault_set(fault, "cannot read the mounts of the jail's template: %s", strerror(errno)) : fd;
}

int watch_remember(int template, int stage, struct fault *fault)
{
	read_at = clock_ms();
	if (read_lasting(template, false, &remembered[0]) < 0 || read_lasting(stage, true, &remembered[1]) < 0)
		return fault_set(fault, "cannot read the mounts of the jail's template: %s", strerror(errno));
	return 0;
}

bool watch_is_whole(bool anew)
{
	int64_t now = clock_ms();

	if (!anew && (now - read_at < RECENT_MS || remembered[0].lines + remembered[1].lines > MANY))
		return true;
	read_at = now;
	return has_all(ZYGOTE_MOUNTS_FD, &remembered[0]) && has_all(ZYGOTE_STAGE_MOUNTS_FD, &remembered[1]);
}
