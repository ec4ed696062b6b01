/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fd.h"
#include "plugin/events.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { REASONS = sizeof(((struct gojail_launches *)0)->failed) / sizeof(uint64_t) };

static const int64_t bounds[] = {GOJAIL_TOOK_US};
enum { BOUNDS = sizeof(bounds) / sizeof(bounds[0]) };

_Static_assert(BOUNDS + 1 == sizeof(((struct gojail_launches *)0)->took) / sizeof(uint64_t), "one more than bounds");
_Static_assert(GOJAIL_REASON_TASK + 1 == REASONS, "one for each reason");

/* Opens STATE/launches, and creates it if it is missing. Returns -1 if it is not there, or not on tmpfs. */
static int open_directory(const struct node *node)
{
	char path[GOJAIL_PATH_MAX + 16];
	struct statfs fs;
	int dir;

	snprintf(path, sizeof(path), "%s/" GOJAIL_LAUNCHES, node->state);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0 && errno == ENOENT && mkdir(path, 0700) == 0)
		dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	/* A page that another file system cannot read or write is a SIGBUS. On tmpfs it is there once it was allocated:
	 * no file is created elsewhere. */
	if (dir >= 0 && (fstatfs(dir, &fs) < 0 || fs.f_type != TMPFS_MAGIC))
		close_fd(&dir);
	return dir;
}

/* Creates the file with all of its space allocated, unless another step is faster; in the place of one that steps of
 * another version still count in. */
static void create_file(const struct node *node, const char *name, bool replace)
{
	static const struct gojail_launches none = {.version = GOJAIL_VERSION};
	scoped_fd dir = open_directory(node);
	scoped_fd fd = dir < 0 ? -1 : openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[32];

	if (replace && dir >= 0)
		unlinkat(dir, name, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd >= 0 && posix_fallocate(fd, 0, sizeof(none)) == 0 &&
	    write(fd, &none, sizeof(none)) == (ssize_t)sizeof(none))
		(void)!linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW);
}

/* Maps the file, if it is of this version. Returns NULL otherwise. */
static struct gojail_launches *map_file(int file)
{
	struct gojail_launches *launches;
	struct stat st;

	if (file < 0 || fstat(file, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != sizeof(*launches))
		return NULL;
	launches = mmap(NULL, sizeof(*launches), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (launches == MAP_FAILED)
		return NULL;
	if (launches->version == GOJAIL_VERSION)
		return launches;
	munmap(launches, sizeof(*launches));
	return NULL;
}

struct gojail_launches *launches_map(const struct node *node, const char *jail)
{
	const char *name = jail[0] ? jail : GOJAIL_NO_JAIL;
	char path[GOJAIL_PATH_MAX + GOJAIL_NAME_MAX + 16];

	snprintf(path, sizeof(path), "%s/" GOJAIL_LAUNCHES "/%s", node->state, name);
	for (int attempt = 0;; attempt++) {
		scoped_fd file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		struct gojail_launches *launches = map_file(file);

		if (launches || attempt)
			return launches;
		create_file(node, name, file >= 0);
	}
}

static void add_to_counter(uint64_t *counter, uint64_t more) { __atomic_fetch_add(counter, more, __ATOMIC_RELAXED); }

void launches_count_entered(struct gojail_launches *launches, int64_t took_us)
{
	int bucket = 0;

	if (!launches)
		return;
	while (bucket < BOUNDS && took_us > bounds[bucket])
		bucket++;
	add_to_counter(&launches->entered, 1);
	add_to_counter(&launches->took[bucket], 1);
	add_to_counter(&launches->took_us, (uint64_t)took_us);
}

void launches_count_failed(struct gojail_launches *launches, int reason)
{
	if (launches && reason >= 0 && reason < REASONS)
		add_to_counter(&launches->failed[reason], 1);
}
