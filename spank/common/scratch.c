/* SPDX-License-Identifier: Apache-2.0 */
#include "common/scratch.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/launch.h"
#include "common/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Creating two directories takes a file system up to a millisecond, which the end of a job can better afford than its
 * start: it leaves spare directories for later jobs, and so does a start that finds none. They are new, never another
 * job's, in which a leftover process may be. They are also a reserve: that many jobs start on a file system that is
 * full.
 */
#define SPARES 32
#define MAKING ".making"

static void spare_name(char *name, size_t size, int number) { snprintf(name, size, "spare.%d", number); }

/* Creates NAME/tmp with the mode of /tmp; what exists already, half made maybe, stays. Returns 0, or -1 with errno. */
static int make_job_dir(int jobs, const char *name)
{
	char tmp[64];

	snprintf(tmp, sizeof(tmp), "%s/tmp", name);
	if (mkdirat(jobs, name, 0700) < 0 && errno != EEXIST)
		return -1;
	if (mkdirat(jobs, tmp, 01777) < 0 && errno != EEXIST)
		return -1;
	return fchmodat(jobs, tmp, 01777, 0); /* not as the umask has it */
}

/* Renames a spare to the job's name. Returns 0, or -1 with errno. */
static int take_spare(int jobs, const char *name)
{
	char spare[32];

	for (int i = 0; i < SPARES; i++) {
		spare_name(spare, sizeof(spare), i);
		if (renameat2(jobs, spare, jobs, name, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != ENOENT)
			break;
	}
	return -1;
}

/*
 * Creates the missing spares. A spare gets its name when it is complete. One process creates them, one at a time, under
 * one name, so that the next process uses what one that was killed left there.
 */
static void make_spares(int jobs)
{
	char spare[32];

	if (flock(jobs, LOCK_EX | LOCK_NB) < 0)
		return;
	for (int i = 0; i < SPARES; i++) {
		spare_name(spare, sizeof(spare), i);
		if (faccessat(jobs, spare, F_OK, 0) == 0)
			continue;
		if (make_job_dir(jobs, MAKING) < 0 || renameat2(jobs, MAKING, jobs, spare, RENAME_NOREPLACE) < 0)
			break;
	}
	flock(jobs, LOCK_UN);
}

#define OTHERS_TEXT                                                                                                    \
	"the scratch directory %s%s can be changed by others than root; ask your administrator to run: gojail check"

/* Reports whether users could replace what is in a directory, as trusted.Check does: none of theirs, and none that they
 * may write to unless it is sticky. */
static bool is_users(const struct stat *st)
{
	return st->st_uid != 0 || (S_ISDIR(st->st_mode) && (st->st_mode & 022) && !(st->st_mode & S_ISVTX));
}

/*
 * Creates the scratch directory and what is missing above it: a directory of tmpfiles.d may be missing since the boot.
 * Below a directory such as /tmp, a user may have come first. Returns 0, or -1 with a fault.
 */
static int make_scratch(const char *scratch, struct fault *fault)
{
	char path[GOJAIL_PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s", scratch);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0 && lstat(path, &st) == 0 && is_users(&st))
			return fault_set(fault, OTHERS_TEXT, path, "");
		*slash = '/';
	}
	mkdir(path, 0711);
	return 0;
}

/* Opens the scratch directory. Returns -1 with errno, which is EPERM where users could replace what is in it. */
static int open_scratch(const char *scratch)
{
	scoped_fd dir = open(scratch, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (dir < 0 || fstat(dir, &st) < 0)
		return -1;
	errno = EPERM;
	if (is_users(&st))
		return -1;
	return take_fd(&dir);
}

static int open_jobs_in(int dir) { return openat(dir, GOJAIL_JOBS, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW); }

/* Opens SCRATCH/jobs, and creates what is missing of it. Returns -1 with a fault. */
static int open_jobs(const char *scratch, struct fault *fault)
{
	scoped_fd dir = open_scratch(scratch);
	struct stat st;

	if (dir < 0 && errno == ENOENT) {
		if (make_scratch(scratch, fault) < 0)
			return -1;
		dir = open_scratch(scratch);
	}
	if (dir < 0 && errno == EPERM)
		return fault_set(fault, OTHERS_TEXT, scratch, "");
	scoped_fd jobs = dir < 0 ? -1 : open_jobs_in(dir);
	if (dir >= 0 && jobs < 0 && errno == ENOENT) {
		mkdirat(dir, GOJAIL_JOBS, 0700);
		jobs = open_jobs_in(dir);
	}
	if (jobs < 0 || fstat(jobs, &st) < 0)
		return fault_set(fault,
				 "cannot open the scratch directory %s/" GOJAIL_JOBS ": %s; ask your administrator",
				 scratch, strerror(errno));
	if (st.st_uid != 0 || (st.st_mode & 022))
		return fault_set(fault, OTHERS_TEXT, scratch, "/" GOJAIL_JOBS);
	return take_fd(&jobs);
}

/*
 * Reports whether a job's directory is another user's: a job of the same number, whose end was missed, may have left
 * it; with two clusters on a node it may be in use.
 */
static bool is_others(const struct stat *dir, uid_t uid) { return dir->st_uid != uid && dir->st_uid != 0; }

/* Creates the directory of a job of that user, from a spare if there is one. Returns 0, or -1 with errno. */
static int claim_dir(int jobs, const char *name, uid_t uid)
{
	if (take_spare(jobs, name) < 0) {
		if (make_job_dir(jobs, name) < 0)
			return -1;
		make_spares(jobs); /* the first job on a new file system may be the one that fills it */
	}
	return fchownat(jobs, name, uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW);
}

/* Opens a directory of a job, which is created if it is missing, with its limit. Returns -1 with errno or a fault.
 */
static int open_part(int jobs, const char *name, const char *path, const struct scratch_part *part, struct fault *fault)
{
	if (strcmp(part->name, SCRATCH_TMP) != 0 && mkdirat(jobs, path, 0700) < 0 && errno != EEXIST)
		return -1;
	scoped_fd dir = openat(jobs, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || (part->bytes && quota_set_limit(dir, name, part->bytes, fault) < 0))
		return -1;
	if (!part->bytes)
		quota_count_only(dir, name);
	int tree = k_open_tree(dir, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree >= 0 && k_mount_setattr(tree, part->attributes) < 0)
		close_fd(&tree);
	return tree;
}

/*
 * Moves a job's directory, which has files, from SCRATCH/jobs to the trash, under a name of its own, as the id may come
 * again. Returns 0, or -1 with errno.
 */
static int move_to_trash(int jobs, const char *name, struct leftover *left)
{
	char to[sizeof(left->name) + sizeof(GOJAIL_TRASH)];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(left->name, sizeof(left->name), "%s.%lld", name, now.tv_sec * 1000000000LL + now.tv_nsec);
	snprintf(to, sizeof(to), GOJAIL_TRASH "/%s", left->name);
	for (int tries = 0; tries < 3; tries++) {
		mkdirat(jobs, GOJAIL_TRASH, 0700);
		if (renameat2(jobs, name, jobs, to, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != ENOENT) /* the process that empties the trash removes it at the end */
			break;
	}
	left->name[0] = '\0';
	return -1;
}

/* Removes the directory of a job; one that has files goes to the trash. Returns 0, or -1 with errno. */
static int remove_job_dir(int jobs, const char *scratch, const char *name, struct leftover *left)
{
	char tmp[64];

	snprintf(tmp, sizeof(tmp), "%s/tmp", name);
	if ((unlinkat(jobs, tmp, AT_REMOVEDIR) == 0 || errno == ENOENT) &&
	    (unlinkat(jobs, name, AT_REMOVEDIR) == 0 || errno == ENOENT)) {
		quota_forget_unused(jobs);
		return 0;
	}
	snprintf(left->scratch, sizeof(left->scratch), "%s", scratch);
	return move_to_trash(jobs, name, left);
}

/* How long a job with a limit waits for the files of an earlier run, which count against it until they are removed. */
#define EARLIER_MS 1000

/*
 * Removes what an earlier run of a requeued job left before the node was booted. A process that creates the job's
 * directory has linked to it from the state directory first, so that one without the link is of a time that the state
 * directory does not know. Returns 0, or -1 with errno.
 */
static int remove_earlier(const struct node *node, const char *scratch, int jobs, const char *name, int job,
			  const struct scratch_part *part)
{
	struct leftover left = {.name = ""};

	if (faccessat(job, GOJAIL_SCRATCH, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (remove_job_dir(jobs, scratch, name, &left) < 0)
		return -1;
	if (!left.name[0])
		return 0;
	clean_start(node, name, left.scratch);
	if (part->bytes)
		scratch_wait(&left, clock_ms() + EARLIER_MS);
	return 0;
}

int scratch_open_tree(const struct node *node, const char *scratch, const char *name, uid_t uid, int job,
		      const struct scratch_part *part, struct fault *fault)
{
	char path[GOJAIL_PATH_MAX + 64], below[GOJAIL_NAME_MAX + 80];
	scoped_fd jobs = open_jobs(scratch, fault);
	struct stat st;
	bool there;
	int tree;

	if (jobs < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s", scratch, name);
	snprintf(below, sizeof(below), "%s/%s", name, part->name);
	there = fstatat(jobs, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (there && is_others(&st, uid))
		return fault_set_earlier(fault,
					 "a job of another user with the same id left %s on this node; "
					 "ask your administrator to run: gojail sweep",
					 path);
	if (there && remove_earlier(node, scratch, jobs, name, job, part) < 0)
		return fault_set(fault,
				 "an earlier run of the job left %s, which cannot be removed: %s; ask your "
				 "administrator to run: gojail sweep",
				 path, strerror(errno));
	/* Noted first, so that the end of the job finds it whatever happens here, and the next step knows whose it is
	 * (remove_earlier). */
	if (symlinkat(path, job, GOJAIL_SCRATCH) < 0 && errno != EEXIST)
		return fault_set(fault,
				 "cannot record the scratch directory in the state directory: %s; is it full "
				 "or read-only?",
				 strerror(errno));
	if (claim_dir(jobs, name, uid) < 0)
		return errno == ENOSPC || errno == EDQUOT ?
			       fault_set(fault,
					 "no room for the job's /tmp: jobs have filled the file system of %s (%s); try "
					 "again later, and ask "
					 "your administrator for tmp_size, which limits each job",
					 scratch, strerror(errno)) :
			       fault_set(fault,
					 "cannot create the job's scratch directory %s: %s; ask your administrator",
					 path, strerror(errno));
	tree = open_part(jobs, name, below, part, fault);
	if (tree < 0 && !fault->text[0])
		fault_set(fault, "cannot use %s/%s as the job's %s: %s; ask your administrator", path, part->name,
			  strcmp(part->name, SCRATCH_TMP) == 0 ? "/tmp" : "changes to the jail's root",
			  strerror(errno));
	return tree;
}

int scratch_limit(const char *name, int job, uint64_t bytes, struct fault *fault)
{
	scoped_fd dir = openat(job, GOJAIL_SCRATCH "/tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0 && errno == ENOENT)
		return 0; /* it is in memory */
	if (dir < 0)
		return fault_set(fault, "tmp_size: cannot open the job's /tmp: %s", strerror(errno));
	return quota_set_limit(dir, name, bytes, fault);
}

int scratch_remove(int job, struct leftover *left)
{
	char path[GOJAIL_PATH_MAX + 64], *name, *last;
	ssize_t length = readlinkat(job, GOJAIL_SCRATCH, path, sizeof(path) - 1);

	if (length < 0)
		return errno == ENOENT ? 0 : -1;
	path[length] = '\0';
	name = strrchr(path, '/');
	if (!name)
		return -1;
	*name++ = '\0';
	last = strrchr(path, '/'); /* .../jobs */
	if (!last || last == path)
		return -1;
	*last = '\0';
	scoped_fd dir = open_scratch(path);
	scoped_fd jobs = dir < 0 ? -1 : open_jobs_in(dir);
	if (jobs < 0 || remove_job_dir(jobs, path, name, left) < 0)
		return -1;
	make_spares(jobs);
	return 0;
}

void scratch_wait(const struct leftover *left, int64_t until)
{
	char path[GOJAIL_PATH_MAX + 160];

	if (!left->name[0])
		return;
	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/" GOJAIL_TRASH "/%s", left->scratch, left->name);
	for (int pause = 1; access(path, F_OK) == 0 && clock_left(until) > 0; pause = pause < 20 ? pause * 2 : pause)
		clock_pause_ms(pause);
}
