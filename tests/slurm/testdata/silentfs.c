/* SPDX-License-Identifier: Apache-2.0 */
/*
 * silentfs.c: mounts a FUSE file system of a user that others may use, and never answers.
 *
 *   silentfs UID DIRECTORY   returns when it is mounted; a process of that name serves it
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char options[128];
	int fuse = open("/dev/fuse", O_RDWR);

	if (argc != 3)
		return 2;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=%d,group_id=0,allow_other", fuse,
		 atoi(argv[1]));
	if (fuse < 0 || mount("silentfs", argv[2], "fuse", MS_NOSUID | MS_NODEV, options) < 0 || daemon(0, 0) < 0) {
		perror(argv[2]);
		return 1;
	}
	for (;;)
		pause();
}
