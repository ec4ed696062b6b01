/* SPDX-License-Identifier: Apache-2.0 */
/* own_file.c: keeps the launcher's own file from what it executes in a jail. */
#include "common/fd.h"
#include "common/syscalls.h"
#include "launcher/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define OWN "/proc/self/exe"

/* Reports whether the launcher's file is a mount by itself, and read-only: 1 or 0; -1 with errno. */
static int own_file_is_protected(void)
{
	struct statx file;
	struct statvfs fs;

	if (statx(AT_FDCWD, OWN, AT_STATX_DONT_SYNC, STATX_INO, &file) < 0 || statvfs(OWN, &fs) < 0)
		return -1;
	return (file.stx_attributes & STATX_ATTR_MOUNT_ROOT) && (fs.f_flag & ST_RDONLY);
}

int own_file_protect(char **argv, const char *directory, struct fault *fault)
{
	static char *environment[] = {NULL};
	char libdir[GOJAIL_PATH_MAX + 16], **words;
	int count = 0, already = own_file_is_protected();
	scoped_fd file = -1;

	if (already > 0)
		return 0;
	while (argv[count])
		count++;
	words = calloc((size_t)count + 2, sizeof(*words));
	if (already < 0 || !words)
		goto failed;
	snprintf(libdir, sizeof(libdir), "libdir=%s", directory);
	words[0] = argv[0];
	words[1] = argv[1];
	words[2] = libdir;
	memcpy(words + 3, argv + 2, (size_t)(count - 2) * sizeof(*words));
	file = k_open_tree(AT_FDCWD, OWN, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (file >= 0 && k_mount_setattr(file, MOUNT_ATTR_RDONLY) == 0)
		fexecve(file, words, environment);
failed:
	fault_set(fault, "cannot protect gojail-launcher's own file from what runs in the jail: %s", strerror(errno));
	free(words);
	return -1;
}
