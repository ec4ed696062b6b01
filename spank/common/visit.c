/* SPDX-License-Identifier: Apache-2.0 */
#include "common/visit.h"

#include "common/path.h"
#include "common/syscalls.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define STACK_SIZE (64 * 1024) /* the work holds a few paths */

struct errand {
	int mnt;    /* the namespace to work in, or -1: the caller's */
	uid_t user; /* the effective uid to work with, if mnt is -1 */
	int (*work)(void *);
	void *what;
	int result, error;
};

/*
 * Runs in the child. Does not return by _exit(2), which AddressSanitizer takes for the end of the caller's stack:
 * clone(2) of the C library ends the child with the result.
 */
static int run_errand(void *argument)
{
	struct errand *errand = argument;

	if ((errand->mnt >= 0 ? setns(errand->mnt, CLONE_NEWNS) : k_seteuid(errand->user)) == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* the caller may be killed while the work hangs on storage */
		errand->result = errand->work(errand->what);
	}
	errand->error = errno;
	return 0;
}

/*
 * Lets a child do an errand. The child has no CLONE_FS, which is what setns(2) asks for, and no signal at its end (the
 * last byte of the flags is 0), so that no wait of Slurm's sees it. It keeps all signals blocked: their handlers are
 * for the caller, whose memory it has.
 */
static int run_in_child(struct errand *errand)
{
	char stack[STACK_SIZE] __attribute__((aligned(16)));
	sigset_t all, before;
	pid_t child;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errand->result = -1;
	errand->error = ECANCELED; /* the child was killed */
	child = clone(run_errand, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_FILES, errand);
	if (child < 0)
		errand->error = errno;
	while (child > 0 && waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = errand->error;
	return errand->result;
}

int visit(int mnt, int (*work)(void *), void *what)
{
	struct errand errand = {.mnt = mnt, .work = work, .what = what};

	if (mnt >= 0)
		return run_in_child(&errand);
	errno = EBADF;
	return -1;
}

int visit_as_user(uid_t user, int (*work)(void *), void *what)
{
	struct errand errand = {.mnt = -1, .user = user, .work = work, .what = what};

	return run_in_child(&errand);
}

static int clone_here(void *path) { return path ? clone_mount_at(path) : clone_root(); }

int visit_clone_mount(int mnt, const char *path) { return visit(mnt, clone_here, (void *)(uintptr_t)path); }
