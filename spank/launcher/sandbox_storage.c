/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_storage.c: the storage of a sandbox that no zygote asks, since its template was replaced. */
#include "common/fd.h"
#include "common/lock.h"
#include "common/record.h"
#include "common/sandbox.h"
#include "common/storage.h"
#include "launcher/library.h"
#include "launcher/origin.h"
#include "launcher/probing.h"
#include "launcher/remote.h"
#include "launcher/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>

/* Opens the file whose time tells when the storage of the sandbox answered last. Returns -1 if there is none. */
static int open_note(int job, const char *sandbox)
{
	char name[SANDBOX_NAME_MAX + 16];

	snprintf(name, sizeof(name), "%s" GOJAIL_STORAGE_SUFFIX, sandbox);
	return openat(job, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
}

/* Enters a mount namespace and asks its remote mounts. Returns 0, or -1 with a fault. */
static int ask_mounts(int namespace, int proc, const struct origin *origin, int64_t until, struct fault *fault)
{
	if (setns(namespace, CLONE_NEWNS) < 0)
		return fault_set(fault, "cannot enter a mount namespace of the job's sandbox: %s", strerror(errno));
	return remote_collect(proc, origin, until, fault);
}

int sandbox_storage_probe(const struct node *node, int64_t until, struct fault *fault)
{
	static struct origin origin; /* without a path: the mounts are the sandbox's own */
	const char *name = library_word("sandbox");
	struct sandbox sandbox = SANDBOX_NONE;
	struct record holder;

	prctl(PR_SET_NAME, GOJAIL_PROBER_NAME);
	prctl(PR_SET_DUMPABLE, 0);
	snprintf(origin.jail, sizeof(origin.jail), "%s", library_word("jail"));
	scoped_fd job = job_open(node, library_word("job"));
	scoped_fd note = job < 0 ? -1 : open_note(job, name);
	/*
	 * One process at a time asks for the sandboxes of that template: one that hangs in storage may be beyond
	 * kill(2), and each step would leave a further one. The children of such a process hold the lock, too.
	 */
	if (note >= 0 && lock_wait(note, LOCK_EX, 10, until) < 0)
		return origin_set_silent(&origin, "of its mounts", fault);
	if (note >= 0 && storage_is_recent(note))
		return 0; /* the process that had the lock before has asked */
	scoped_fd proc = open_node_proc(fault);
	if (proc < 0 || sandbox_open_recorded(&sandbox, job, name, &holder, fault) < 0)
		return -1;
	scoped_fd stage = record_get_fd(&holder, sandbox.holder, GOJAIL_STAGE_FD);
	if (stage < 0)
		return fault_set(fault, "cannot open the stage of sandbox %s: %s", name, strerror(errno));
	if (ask_mounts(sandbox.mnt, proc, &origin, until, fault) < 0 ||
	    ask_mounts(stage, proc, &origin, until, fault) < 0)
		return -1;
	if (note >= 0)
		probing_note_good(note);
	return 0;
}
