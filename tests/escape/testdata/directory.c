/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.c: a name service that finds the account dan by its uid and lists no account, as a directory service may.
 * It hangs or fails for other uids of the range while the files hang and fail are there.
 */
#include <errno.h>
#include <nss.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DIRECTORY "/srv/directory/"

enum nss_status _nss_directory_getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t size, int *error);

enum nss_status _nss_directory_getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t size, int *error)
{
	*error = ENOENT;
	if (uid < 100000 || uid > 165535)
		return NSS_STATUS_NOTFOUND;
	if (uid == 140000) {
		if (snprintf(text, size, "dan") >= (int)size) {
			*error = ERANGE;
			return NSS_STATUS_TRYAGAIN;
		}
		*entry = (struct passwd){.pw_name = text,
					 .pw_passwd = "x",
					 .pw_uid = uid,
					 .pw_gid = uid,
					 .pw_gecos = "",
					 .pw_dir = "/tmp",
					 .pw_shell = "/bin/sh"};
		return NSS_STATUS_SUCCESS;
	}
	while (access(DIRECTORY "hang", F_OK) == 0)
		usleep(10000);
	if (access(DIRECTORY "fail", F_OK) == 0) {
		*error = EIO;
		return NSS_STATUS_UNAVAIL;
	}
	return NSS_STATUS_NOTFOUND;
}
