/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/watch.h"

#include "common/clock.h"
#include "common/hash.h"
#include "launcher/descriptors.h"
#include "launcher/job_stage.h"
#include "launcher/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Hashes of mounts, in ascending order, of a table with that many mounts. */
struct mounts {
	uint64_t *list;
	size_t count, in_table;
};

#define RECENT_MS 1000
#define MANY 512 /* mounts that take milliseconds to read, such as home directories that are mounted one by one */

static struct mounts remembered[2];
static int64_t read_at; /* clock_ms */

/* Returns a hash of what stays the same of a mount: its id, its root and its mount point. */
static uint64_t hash_mount(const struct mount_line *mount)
{
	uint64_t hash = hash_add(HASH_BEGIN, (const char *)&mount->id, sizeof(mount->id));

	hash = hash_add(hash, mount->root, strlen(mount->root) + 1);
	return hash_add(hash, mount->path, strlen(mount->path));
}

static int compare_hashes(const void *a, const void *b)
{
	const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return one < other ? -1 : one > other;
}

static int compare_ids(const void *a, const void *b)
{
	const struct mount_line *one = a, *other = b;

	return compare_hashes(&one->id, &other->id);
}

/*
 * Reports whether a mount comes and goes with the node's, of which the template has a copy: one in the node's own
 * directories of the stage, such as that of a login session or a container, or one that an automounter made. If the
 * node removes its directory, the copy is removed, too.
 */
static bool is_passing(const struct mount_line *mount, const struct mount_table *table, bool stage)
{
	const struct mount_line wanted = {.id = mount->parent};
	const struct mount_line *parent = bsearch(&wanted, table->list, table->count, sizeof(wanted), compare_ids);

	return (stage && is_system_path(mount->path)) || (parent && strcmp(parent->type, "autofs") == 0);
}

/* Lists the mounts of a namespace, all or only those that must stay. Returns 0, or -1 with errno. */
static int read_mounts(int fd, bool lasting, bool stage, struct mounts *mounts)
{
	struct mount_table table;

	if (mountinfo_read(fd, &table) < 0)
		return -1;
	*mounts = (struct mounts){.list = malloc((table.count + 1) * sizeof(*mounts->list)), .in_table = table.count};
	if (lasting)
		qsort(table.list, table.count, sizeof(*table.list), compare_ids);
	for (size_t i = 0; mounts->list && i < table.count; i++)
		if (!lasting || !is_passing(&table.list[i], &table, stage))
			mounts->list[mounts->count++] = hash_mount(&table.list[i]);
	mountinfo_free(&table);
	if (!mounts->list)
		return -1;
	qsort(mounts->list, mounts->count, sizeof(*mounts->list), compare_hashes);
	return 0;
}

/* Reports whether a namespace has all mounts that it had. Additional mounts, such as those of an automounter, do not
 * matter. */
static bool has_all(int fd, const struct mounts *before)
{
	struct mounts now;
	size_t found = 0;

	if (read_mounts(fd, false, false, &now) < 0)
		return true; /* no memory, or a table that changed while it was read: later, maybe */
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
	if (read_mounts(template, true, false, &remembered[0]) < 0 ||
	    read_mounts(stage, true, true, &remembered[1]) < 0)
		return fault_set(fault, "cannot read the mounts of the jail's template: %s", strerror(errno));
	return 0;
}

bool watch_is_whole(bool anew)
{
	int64_t now = clock_ms();

	if (!anew && (now - read_at < RECENT_MS || remembered[0].in_table + remembered[1].in_table > MANY))
		return true;
	read_at = now;
	return has_all(ZYGOTE_MOUNTS_FD, &remembered[0]) && has_all(ZYGOTE_STAGE_MOUNTS_FD, &remembered[1]);
}
