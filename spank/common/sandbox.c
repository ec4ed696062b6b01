/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sandbox.h"

#include "common/fd.h"
#include "common/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

const struct sandbox_kind sandbox_kinds[SANDBOX_KINDS] = {{GOJAIL_REQUEST_PID, "pid", GOJAIL_PID_FD},
							  {GOJAIL_REQUEST_IPC, "ipc", GOJAIL_IPC_FD},
							  {GOJAIL_REQUEST_UTS, "uts", GOJAIL_UTS_FD}};

/* Closes the descriptor of a namespace, unless it is the holder's. */
static void close_namespace(int *fd, int holder)
{
	if (*fd != holder)
		close_fd(fd);
	*fd = -1;
}

void sandbox_close(struct sandbox *sandbox)
{
	close_namespace(&sandbox->mnt, sandbox->holder);
	close_namespace(&sandbox->pid, sandbox->holder);
	close_namespace(&sandbox->ipc, sandbox->holder);
	close_namespace(&sandbox->uts, sandbox->holder);
	close_fd(&sandbox->stage);
	close_fd(&sandbox->root);
	close_fd(&sandbox->net);
	close_fd(&sandbox->user);
	close_fd(&sandbox->holder);
}

uint64_t job_hash(const char *text) { return hash_add(HASH_BEGIN, text, text ? strlen(text) : 0); }

/* Bits of the last digit of a sandbox's name: a network of the job's own, and a mode of --jail-root. */
enum { KIND_NET = 1, KIND_RANGE = 2, KIND_SELF = 4, KIND_ALL = 7 };

/* Returns the kind of the sandbox of that spec. */
static uint64_t kind_number(const struct sandbox_spec *spec)
{
	uint64_t root = spec_is_range(spec) ? KIND_RANGE : KIND_SELF;

	return (spec->net ? KIND_NET : 0) | (spec->root ? root : 0);
}

/* Returns the kind of the sandbox of that name. */
static unsigned long read_kind(const char *name)
{
	return strchr(name, '+') ? strtoul(name + strlen(name) - 1, NULL, 16) & KIND_ALL : 0;
}

/* Reports whether the user is root in a sandbox of that name, by either mode of --jail-root. */
static bool has_root(const char *name) { return read_kind(name) & (KIND_RANGE | KIND_SELF); }

bool sandbox_is_range(const char *name) { return read_kind(name) & KIND_RANGE; }

void sandbox_name(char *name, const struct jail *jail, const struct sandbox_spec *spec)
{
	uint64_t hash = (job_hash(spec->mounts) & ~(uint64_t)KIND_ALL) | kind_number(spec);

	snprintf(name, SANDBOX_NAME_MAX + 1, "%s", jail->name);
	if (spec->mounts || spec->net || spec->root)
		snprintf(name, SANDBOX_NAME_MAX + 1, "%s+%016" PRIx64, jail->name, hash);
}

#define OTHERS_TEXT                                                                                                    \
	"a job of another user with the same id left its sandbox on this node; ask your administrator to run: gojail " \
	"sweep"

int job_find_net(const char *state, const struct sandbox_spec *spec, struct record *net, struct fault *fault)
{
	char path[GOJAIL_PATH_MAX + 64], key[GOJAIL_KEY_LEN + 1];

	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s/" GOJAIL_NET, state, spec->job);
	if (record_find(AT_FDCWD, path, net) < 0)
		return -1;
	if (net->uid != spec->user.uid)
		return fault_set_earlier(fault, OTHERS_TEXT);
	snprintf(key, sizeof(key), "%016" PRIx64, job_hash(spec->net));
	if (strcmp(key, net->key) == 0)
		return 0;
	return fault_set(fault,
			 "--jail-net=%s: an earlier step gave this job other rails, and all of its steps share them; "
			 "use the same rails, or start another job",
			 spec->net);
}

static int *fd_of_kind(struct sandbox *sandbox, int kind)
{
	int *fds[SANDBOX_KINDS] = {&sandbox->pid, &sandbox->ipc, &sandbox->uts};

	return fds[kind];
}

int sandbox_take_from_holder(struct sandbox *sandbox, const struct jail *jail, const struct sandbox_spec *spec,
			     const struct record *holder)
{
	/* By a pidfd the kernel wants CAP_SYS_PTRACE, which a container may withhold. */
	const bool by_pidfd = !jail->scope && prctl(PR_CAPBSET_READ, CAP_SYS_PTRACE, 0, 0, 0) == 1;

	sandbox->mnt = by_pidfd ? sandbox->holder : record_get_fd(holder, sandbox->holder, GOJAIL_MNT_FD);
	sandbox->stage = record_get_fd(holder, sandbox->holder, GOJAIL_STAGE_FD);
	sandbox->root = record_get_fd(holder, sandbox->holder, GOJAIL_ROOT_FD);
	if (sandbox->mnt < 0 || sandbox->stage < 0 || sandbox->root < 0)
		return -1;
	if (spec->root) {
		sandbox->user = record_get_fd(holder, sandbox->holder, GOJAIL_USER_FD);
		if (sandbox->user < 0)
			return -1;
	}
	for (int i = 0; i < SANDBOX_KINDS; i++)
		if (jail->namespaces & sandbox_kinds[i].bit) {
			int *fd = fd_of_kind(sandbox, i);

			*fd = by_pidfd ? sandbox->holder : record_get_fd(holder, sandbox->holder, sandbox_kinds[i].fd);
			if (*fd < 0)
				return -1;
		}
	return 0;
}

int sandbox_open_recorded(struct sandbox *sandbox, int job, const char *name, struct record *holder,
			  struct fault *fault)
{
	sandbox->holder = job < 0 ? -1 : record_open(job, name, holder);
	scoped_fd process = sandbox->holder < 0 ? -1 : record_open_proc(holder);
	if (process < 0)
		return fault_set(fault, "sandbox %s: its holder has ended", name);
	sandbox->pid = open_namespace(process, "pid");
	sandbox->ipc = open_namespace(process, "ipc");
	sandbox->uts = open_namespace(process, "uts");
	sandbox->net = open_namespace(process, "net");
	sandbox->mnt = open_namespace(process, "mnt");
	if (sandbox->pid < 0 || sandbox->ipc < 0 || sandbox->uts < 0 || sandbox->net < 0 || sandbox->mnt < 0)
		return fault_set(fault, "cannot open the namespaces of sandbox %s: %s", name, strerror(errno));
	return 0;
}

int sandbox_open_user(struct sandbox *sandbox, const char *name, const struct record *holder, struct fault *fault)
{
	if (!has_root(name))
		return 0;
	sandbox->user = record_get_fd(holder, sandbox->holder, GOJAIL_USER_FD);
	return sandbox->user >= 0 ?
		       0 :
		       fault_set(fault, "cannot open the user namespace of sandbox %s: %s", name, strerror(errno));
}

void job_forget_ended(const struct node *node, const char *job)
{
	char path[GOJAIL_PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/" GOJAIL_ENDED "/%s", node->state, job);
	unlink(path);
}

int job_write_text(int dir, const char *name, const char *text)
{
	scoped_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* Reports whether dir/name has this text and no more; a missing file has the empty text. */
static bool has_text(int dir, const char *name, const char *text)
{
	char have[GOJAIL_MOUNTS_MAX + 1];
	scoped_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t got = fd < 0 ? 0 : read(fd, have, sizeof(have));

	return got == (ssize_t)strlen(text) && memcmp(have, text, (size_t)got) == 0;
}

static bool has_suffix(const char *text, const char *suffix)
{
	size_t length = strlen(text), tail = strlen(suffix);

	return length > tail && strcmp(text + length - tail, suffix) == 0;
}

/* Reports whether a name in the directory of a job is that of a sandbox's record; no jail has the name of another file.
 */
static bool is_sandbox(const char *name)
{
	static const char *const beside[] = {GOJAIL_SPEC_SUFFIX, GOJAIL_MOUNTS_SUFFIX, GOJAIL_STORAGE_SUFFIX};

	for (unsigned i = 0; i < sizeof(beside) / sizeof(beside[0]); i++)
		if (has_suffix(name, beside[i]))
			return false;
	return name[0] != '.' && strcmp(name, GOJAIL_LOCK);
}

const char *job_next_sandbox(DIR *dir)
{
	const char *name;

	do
		name = next_name(dir);
	while (name && !is_sandbox(name));
	return name;
}

/* Returns the length of the jail's name in a sandbox's. */
static size_t measure_jail(const char *name) { return strcspn(name, "+"); }

void sandbox_write_jail(const char *name, char *jail, size_t size)
{
	snprintf(jail, size, "%.*s", (int)measure_jail(name), name);
}

bool sandbox_is_of_jail(const char *name, const char *jail)
{
	return !jail || (strlen(jail) == measure_jail(name) && strncmp(name, jail, strlen(jail)) == 0);
}

bool job_is_run(const char *job) { return strncmp(job, "run-", 4) == 0; }

int job_open(const struct node *node, const char *job)
{
	char path[GOJAIL_PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s", node->state, job);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

DIR *job_open_list(const struct node *node, const char *job) { return list_directory(job_open(node, job)); }

/* Reads who is noted as the owner of the job's directory, "" if nobody is. Reports whether it is this user. */
static bool read_owner(int job, uid_t uid, char *wanted, char *owner, size_t size)
{
	snprintf(wanted, size, "%u\n", (unsigned)uid);
	read_file(job, GOJAIL_OWNER, owner, size);
	return strcmp(owner, wanted) == 0;
}

bool job_has_owner(int job, uid_t uid)
{
	char wanted[24], owner[24];

	return read_owner(job, uid, wanted, owner, sizeof(owner));
}

int job_open_own(const struct node *node, const char *job, uid_t uid)
{
	int dir = job_open(node, job);

	if (dir >= 0 && !job_has_owner(dir, uid))
		close_fd(&dir);
	return dir;
}

int job_check_owner(int job, uid_t uid, struct fault *fault)
{
	char wanted[24], owner[24];

	if (read_owner(job, uid, wanted, owner, sizeof(owner)))
		return 0;
	if (owner[0])
		return fault_set_earlier(fault, OTHERS_TEXT);
	if (job_write_text(job, GOJAIL_OWNER, wanted) == 0)
		return JOB_OWNER_NOTED;
	fault_set(fault, "cannot write in the state directory: %s; is it full or read-only?", strerror(errno));
	unlinkat(job, GOJAIL_OWNER, 0);
	return -1;
}

#define SANDBOX_PATH_MAX (GOJAIL_PATH_MAX + SANDBOX_NAME_MAX + 64)

/* Reports whether the sandbox whose record has that path was built with the mounts of this spec. */
static bool has_same_mounts(const char *record, const struct sandbox_spec *spec)
{
	char beside[SANDBOX_PATH_MAX + 16];

	if (!strchr(strrchr(record, '/'), '+'))
		return true; /* it stands for no mounts */
	snprintf(beside, sizeof(beside), "%s" GOJAIL_MOUNTS_SUFFIX, record);
	return has_text(AT_FDCWD, beside, spec->mounts ? spec->mounts : "");
}

int sandbox_find(struct sandbox *sandbox, const struct node *node, const struct jail *jail,
		 const struct sandbox_spec *spec, struct fault *fault)
{
	char name[SANDBOX_NAME_MAX + 1], path[SANDBOX_PATH_MAX];
	struct record holder, net;

	if (spec->net && job_find_net(node->state, spec, &net, fault) < 0)
		return -1;
	sandbox_name(name, jail, spec);
	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s/%s", node->state, spec->job, name);
	sandbox->holder = record_open(AT_FDCWD, path, &holder);
	if (sandbox->holder < 0)
		return -1;
	scoped_fd of_net = spec->net ? record_open_proc(&net) : -1;
	sandbox->net = spec->net ? open_namespace(of_net, "net") : -1;
	if (holder.uid != spec->user.uid)
		fault_set_earlier(fault, OTHERS_TEXT);
	else if (!has_same_mounts(path, spec))
		fault_set(fault, "another sandbox of this job has the same hash; change --jail-mount, for example the "
				 "order of its mounts");
	else if ((!spec->net || sandbox->net >= 0) && sandbox_take_from_holder(sandbox, jail, spec, &holder) == 0)
		return 0;
	sandbox_close(sandbox);
	return -1;
}
