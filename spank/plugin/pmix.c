/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pmix.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/syscalls.h"
#include "common/visit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The directory that holds it, unless TmpFS, mpi.conf or the user's SLURM_PMIX_TMPDIR name another. */
#define PARENT "/tmp"

/* Limits of what is removed of a user's tree at the end of a step: what is deeper, or more, is removed with the job. */
#define DEPTH_MAX 32
#define ENTRIES_MAX 10000

void pmix_name(struct pmix *pmix, uid_t user, const char *job, uint32_t step)
{
	pmix->user = user;
	snprintf(pmix->path, sizeof(pmix->path), PARENT "/spmix_appdir_%u_%s.%u", (unsigned)user, job, (unsigned)step);
}

/* Removes a tree of the user's as far as the limits above allow. */
static void remove_tree(int parent, const char *name, int depth, int *entries)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
	};
	struct dirent *entry;
	DIR *dir;
	int fd;

	if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || depth == 0)
		return;
	fd = (int)syscall(SYS_openat2, parent, name, &how, sizeof(how));
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		close_fd(&fd);
		return;
	}
	while ((*entries)-- > 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && unlinkat(fd, entry->d_name, 0) < 0 &&
		    errno == EISDIR)
			remove_tree(fd, entry->d_name, depth - 1, entries);
	closedir(dir);
	unlinkat(parent, name, AT_REMOVEDIR);
}

int pmix_open_tmp(int root) { return open_in_root(root, PARENT, RESOLVE_NO_SYMLINKS); }

struct removal {
	int parent;
	const char *name;
};

/* Removes the directory, for visit_as_user: without root's rights, whatever the user has put there. Returns 0. */
static int remove_directory(void *what)
{
	struct removal *removal = what;
	int entries = ENTRIES_MAX;

	remove_tree(removal->parent, removal->name, DEPTH_MAX, &entries);
	return 0;
}

void pmix_remove(const struct pmix *pmix, int tmp)
{
	struct removal removal = {tmp, strrchr(pmix->path, '/') + 1};
	struct stat there, here;

	if (fstatat(tmp, removal.name, &there, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (lstat(pmix->path, &here) == 0 && is_same_file(&here, &there))
		return; /* the jail shows the node's /tmp */
	visit_as_user(pmix->user, remove_directory, &removal);
	mkdir(pmix->path, 0700);
}
