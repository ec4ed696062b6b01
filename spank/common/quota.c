/* SPDX-License-Identifier: Apache-2.0 */
/* quota.c: the project quota that limits a job's /tmp on the node's disk (ext4, xfs; Linux 5.14). */
#include "common/scratch.h"
#include "common/syscalls.h"
#include "gojail.h"

#include <errno.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

/* QCMD of linux/quota.h shifts into the sign. */
#define QUOTA(command) ((unsigned)(command) << SUBCMDSHIFT | PRJQUOTA)

static uint32_t find_project(const char *job)
{
	if (strncmp(job, "run-", 4) == 0)
		return GOJAIL_PROJECT_OF_RUNS ^ (uint32_t)strtoul(job + 4, NULL, 10);
	if (strncmp(job, GOJAIL_LOGIN, strlen(GOJAIL_LOGIN)) == 0)
		return GOJAIL_PROJECT_OF_LOGINS ^ (uint32_t)strtoul(job + strlen(GOJAIL_LOGIN), NULL, 10);
	return GOJAIL_PROJECT_OF_JOBS ^ (uint32_t)strtoul(job, NULL, 10);
}

/*
 * The number of files is limited, too: empty files need no blocks of the job's quota, but could take the last inode
 * from all others.
 */
#define BYTES_PER_FILE 4096
#define FILES_MIN 16384

static int set_limit(int dir, uint32_t project, uint64_t bytes)
{
	uint64_t files = bytes / BYTES_PER_FILE;
	struct if_dqblk limit = {.dqb_bhardlimit = (bytes + QIF_DQBLKSIZE - 1) >> QIF_DQBLKSIZE_BITS,
				 .dqb_ihardlimit = bytes && files < FILES_MIN ? FILES_MIN : files,
				 .dqb_valid = QIF_LIMITS};

	return (int)syscall(SYS_quotactl_fd, dir, QUOTA(Q_SETQUOTA), project, &limit);
}

/* Checks that the file system limits projects: one may count them without enforcing limits. Returns 0, or -1 with
 * errno. */
static int check_enforced(int dir)
{
	struct fs_quota_statv state = {.qs_version = FS_QSTATV_VERSION1};

	if (syscall(SYS_quotactl_fd, dir, QUOTA(Q_XGETQSTATV), 0, &state) < 0)
		return -1;
	errno = EOPNOTSUPP;
	return state.qs_flags & FS_QUOTA_PDQ_ENFD ? 0 : -1;
}

/*
 * Puts the directory, and what is created in it from now on, into the project; with leave, unless it has inherited
 * another one. Returns 0, or -1 with errno.
 */
static int join_project(int dir, uint32_t project, bool leave)
{
	struct fsxattr attributes;

	if (ioctl(dir, FS_IOC_FSGETXATTR, &attributes) < 0)
		return -1;
	if (leave && attributes.fsx_projid)
		return 0;
	attributes.fsx_projid = project;
	attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	return ioctl(dir, FS_IOC_FSSETXATTR, &attributes);
}

static bool has_limit(int dir, uint32_t project, uint64_t bytes)
{
	struct if_dqblk limit = {0};

	return syscall(SYS_quotactl_fd, dir, QUOTA(Q_GETQUOTA), project, &limit) == 0 && limit.dqb_bhardlimit &&
	       limit.dqb_bhardlimit <= bytes >> QIF_DQBLKSIZE_BITS;
}

int quota_set_limit(int dir, const char *job, uint64_t bytes, struct fault *fault)
{
	uint32_t project = find_project(job);

	if (check_enforced(dir) < 0 && errno == ENOSYS)
		return fault_set(
			fault,
			"tmp_size: this node's kernel has no quotas of directories (quotactl_fd: %s; Linux 5.14); ask "
			"your administrator to write tmp = \"tmpfs\"",
			strerror(errno));
	if (check_enforced(dir) < 0)
		return fault_set(
			fault,
			"tmp_size: the file system of the scratch directory does not limit directories (%s); ask "
			"your administrator to mount it with prjquota (ext4 or xfs), or to write tmp = \"tmpfs\"",
			strerror(errno));
	/* In this order: a limit of a project that has nothing is taken for that of a job that ended. */
	if (join_project(dir, project, false) < 0 ||
	    (!has_limit(dir, project, bytes) && set_limit(dir, project, bytes) < 0))
		return fault_set(fault, "tmp_size: cannot limit the job's /tmp: %s", strerror(errno));
	return 0;
}

void quota_count_only(int dir, const char *job)
{
	/* What fails here, on a full file system maybe, is no reason to fail a job that has no limit. */
	if (check_enforced(dir) == 0)
		(void)join_project(dir, find_project(job), true);
}

/*
 * Removes the limit of a project that had nothing when it was found, unless a job of the same number has come
 * meanwhile: that may have taken the limit for its own (quota_set_limit), and gets it back.
 */
static void forget_limit(int dir, const struct if_nextdqblk *found)
{
	struct if_dqblk now = {0}, limit = {.dqb_bhardlimit = found->dqb_bhardlimit,
					    .dqb_bsoftlimit = found->dqb_bsoftlimit,
					    .dqb_ihardlimit = found->dqb_ihardlimit,
					    .dqb_isoftlimit = found->dqb_isoftlimit,
					    .dqb_valid = QIF_LIMITS};

	if (set_limit(dir, found->dqb_id, 0) < 0 ||
	    syscall(SYS_quotactl_fd, dir, QUOTA(Q_GETQUOTA), found->dqb_id, &now) < 0)
		return;
	if (now.dqb_curinodes && !now.dqb_bhardlimit && !now.dqb_ihardlimit)
		syscall(SYS_quotactl_fd, dir, QUOTA(Q_SETQUOTA), found->dqb_id, &limit);
}

/*
 * A limit lasts as long as there is something to limit: a descriptor of an ended job's file may have been passed to
 * another job. The directory counts as a file, so that a job that exists always has its limit (quota_set_limit). Called
 * where job_epilog has removed an empty /tmp, which starts no Go; a /tmp with files goes to the trash, and the process
 * that empties it does the same (ForgetUnusedQuotas in internal/quota).
 */
void quota_forget_unused(int dir)
{
	struct if_nextdqblk found;
	uint64_t project = GOJAIL_PROJECT_OF_RUNS;

	while (project <= UINT32_MAX &&
	       syscall(SYS_quotactl_fd, dir, QUOTA(Q_GETNEXTQUOTA), (uint32_t)project, &found) == 0) {
		if (!found.dqb_curspace && !found.dqb_curinodes && (found.dqb_bhardlimit || found.dqb_ihardlimit))
			forget_limit(dir, &found);
		project = (uint64_t)found.dqb_id + 1;
	}
}
