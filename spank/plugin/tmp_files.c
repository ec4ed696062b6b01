/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/tmp_files.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/syscalls.h"
#include "common/visit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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
	dir = list_directory(fd);
	if (!dir)
		return;
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
	struct stat in_job, on_node;

	if (fstatat(tmp, removal.name, &in_job, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (lstat(pmix->path, &on_node) == 0 && is_same_file(&on_node, &in_job))
		return; /* the jail shows the node's /tmp */
	visit_as_user(pmix->user, remove_directory, &removal);
	mkdir(pmix->path, 0700);
}

/* The name of the file, for mkstemp(3), in TmpFS: setup_x11_forward in Slurm's x11_forwarding.c. */
#define TEMPLATE "/tmp/.Xauthority-XXXXXX"
#define FIXED (sizeof("/tmp/.Xauthority-") - 1)

/* Reports whether Slurm made the file. Without --x11, XAUTHORITY is the user's: no other path is opened. */
static bool is_of_slurm(const char *path)
{
	return strlen(path) == sizeof(TEMPLATE) - 1 && strncmp(path, TEMPLATE, FIXED) == 0 &&
	       !strchr(path + FIXED, '/');
}

void x11_read(struct x11 *x11, spank_t sp)
{
	char path[sizeof(x11->path)];
	struct stat st;
	ssize_t length;

	if (spank_getenv(sp, "XAUTHORITY", path, sizeof(path)) != ESPANK_SUCCESS || !is_of_slurm(path))
		return;
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_size > (off_t)sizeof(x11->cookies))
		return;
	length = read(fd, x11->cookies, sizeof(x11->cookies));
	if (length <= 0)
		return;
	x11->length = (size_t)length;
	memcpy(x11->path, path, sizeof(path));
}

void x11_write(const struct x11 *x11)
{
	char own[sizeof(x11->path) + 16];

	if (!x11->path[0] || access(x11->path, F_OK) == 0)
		return;
	/* Whole or not at all: another task may look at any moment. */
	snprintf(own, sizeof(own), "%s.%d", x11->path, (int)getpid());
	scoped_fd fd = open(own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && write(fd, x11->cookies, x11->length) == (ssize_t)x11->length && rename(own, x11->path) == 0)
		return;
	slurm_error("gojail: --x11: cannot write %s in the jail: %s; the X server will refuse X11 programs", x11->path,
		    strerror(errno));
	unlink(own);
}
