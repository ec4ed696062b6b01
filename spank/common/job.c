/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job.h"

#include "common/allocation.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/launch.h"
#include "common/lock.h"
#include "common/record.h"
#include "common/share.h"
#include "common/storage.h"
#include "common/zygote_client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_KINDS (GOJAIL_REQUEST_PID | GOJAIL_REQUEST_IPC | GOJAIL_REQUEST_UTS)

/* Opens the job's directory, and creates it if it is missing. Returns -1 with a fault. */
static int open_job_dir(const struct build *build, bool *created)
{
	const struct node *node = build->node;
	const char *job = build->spec->job;
	char path[GOJAIL_PATH_MAX + 64], parent[GOJAIL_PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s", node->state, job);
	*created = mkdir(path, 0700) == 0;
	if (!*created && errno == ENOENT) {
		snprintf(parent, sizeof(parent), "%s/" GOJAIL_JOBS, node->state);
		mkdir(parent, 0700);
		*created = mkdir(path, 0700) == 0;
	}
	fd = job_open(node, job);
	if (fd < 0)
		fault_set(build->fault, "cannot open %s: %s; is the state directory full or read-only?", path,
			  strerror(errno));
	return fd;
}

/*
 * Opens and locks the job's directory. Returns the lock, or -1 with a fault. The end of a job removes both, so check
 * that the lock is still linked.
 */
static int lock_job(struct build *build, bool *created)
{
	struct stat st;

	for (;;) {
		build->job = open_job_dir(build, created);
		if (build->job < 0)
			return -1;
		int lock = lock_until(build->job, GOJAIL_LOCK, build->until, "the job's sandbox", build->fault);
		if (lock < 0 ? fstat(build->job, &st) < 0 || st.st_nlink > 0 : fstat(lock, &st) == 0 && st.st_nlink > 0)
			return lock;
		*build->fault = (struct fault){0}; /* in a directory that has been removed, no lock can be opened */
		close_fd(&lock);
		close_fd(&build->job);
	}
}

/* Links a file of the template to a name in the job's directory, for people only: no step fails for it. An earlier
 * sandbox may have left the name. */
static void link_to_template(const struct build *build, const char *file, const char *to)
{
	char from[GOJAIL_PATH_MAX + 128];

	snprintf(from, sizeof(from), "%s/" GOJAIL_JAILS "/%s/%s", build->node->state, build->jail->name, file);
	if (linkat(AT_FDCWD, from, build->job, to, 0) == 0 || (errno != EEXIST && errno != ENOENT))
		return;
	if (!build->first && unlinkat(build->job, to, 0) == 0)
		linkat(AT_FDCWD, from, build->job, to, 0);
}

/*
 * Writes what must exist before the record: the user's mounts, by which later steps recognize the sandbox; and links to
 * the template's spec, which `gojail spec --job` prints, and to the versions of the store that it may have. Returns 0,
 * or -1 with a fault.
 */
static int write_beside(const struct build *build)
{
	const char *mounts = build->spec->mounts, *name = build->name;
	char to[SANDBOX_NAME_MAX + 16];

	snprintf(to, sizeof(to), "%s" GOJAIL_MOUNTS_SUFFIX, name);
	if (!build->first)
		unlinkat(build->job, to, 0);
	if (mounts && job_write_text(build->job, to, mounts) < 0)
		return fault_set(build->fault, "cannot write %s in the state directory: %s; is it full or read-only?",
				 to, strerror(errno));
	snprintf(to, sizeof(to), "%s" GOJAIL_SPEC_SUFFIX, name);
	link_to_template(build, GOJAIL_TEMPLATE_SPEC, to);
	snprintf(to, sizeof(to), ".%s." GOJAIL_VERSIONS, name);
	link_to_template(build, GOJAIL_VERSIONS, to);
	return 0;
}

/*
 * Checks that the job may have one more sandbox: each is a process and some fifty mounts, which no cgroup of the job
 * counts. Beside one of another contract there is none: the job would have two /tmp, and processes that do not see each
 * other. Returns 0, or -1 with a fault.
 */
static int count_sandboxes(int job, struct fault *fault)
{
	scoped_list *dir = list_directory(openat(job, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct record holder;
	bool foreign = false;
	int count = 0;

	for (const char *name; (name = job_next_sandbox(dir));) {
		count += record_find(job, name, &holder) == 0;
		foreign = foreign || record_is_foreign(&holder);
	}
	if (foreign)
		return fault_set(fault, "another version was installed on this node while this job runs, and a new "
					"step cannot enter the "
					"job's sandbox: its running steps go on; submit what remains as a new job");
	if (count < GOJAIL_SANDBOXES_MAX)
		return 0;
	return fault_set_request(
		fault,
		"this job has %d sandboxes on this node, one for each --jail, --jail-mount and --jail-root of "
		"its steps; "
		"the most that a job may have: use the same options in more of its steps",
		count);
}

static int fault_ending_zygote(const struct jail *jail, struct fault *fault)
{
	return fault_set(fault,
			 "the zygote of jail \"%s\" ended each time a sandbox was requested; ask your administrator "
			 "to run: gojail check",
			 jail->name);
}

/*
 * Connects to the zygote, which may be replaced meanwhile (gojail reload, a new configuration), and notes its template
 * for the sandbox of that name. Returns a socket, ZYGOTE_STUCK, or -1 with a fault.
 */
static int connect_to_zygote(const struct build *build, struct record *zygote)
{
	const struct node *node = build->node;
	const struct jail *jail = build->jail;
	struct fault *fault = build->fault;
	int64_t until = build->until;

	for (int attempt = 0; attempt < 5; attempt++) {
		/* Whether it lives, its socket shows. */
		bool found = attempt == 0 && zygote_read(node, jail->name, zygote) == 0 &&
			     strcmp(zygote->key, jail->key) == 0;

		if (!found && zygote_find_or_start(node, jail, until, zygote, fault) < 0)
			return -1;
		storage_note_template(node, jail->name, build->job, build->name);
		int talk = zygote_connect(node, jail->name, GOJAIL_SOCKET, zygote_find_deadline(zygote, until), fault);
		if (talk != ZYGOTE_GONE)
			return talk;
		clock_pause_ms(1);
		/* A launcher was killed between the sockets and the record: nobody serves what the record's zygote had.
		 */
		if (attempt > 1 && zygote_replace(node, jail, zygote, until, fault) < 0)
			return -1;
	}
	return fault_ending_zygote(jail, fault);
}

/* Adds a namespace that the job has, for the holder to enter. Returns 0, or -1 with a fault. */
static int add_namespace(const struct build *build, const struct record *of, const char *kind, uint32_t flag)
{
	scoped_fd process = record_open_proc(of);
	int fd = open_namespace(process, kind);

	if (fd < 0)
		return fault_set(build->fault, "the job's %s namespace has just ended; try again", kind);
	return job_add_tree(build, fd, kind, flag);
}

/* Requests the job's network for the holder: the one it has, or a new one. Returns 0, or -1 with a fault. */
static int request_net(const struct build *build)
{
	struct record net;

	if (!build->spec->net)
		return 0;
	if (job_find_net(build->node->state, build->spec, &net, build->fault) == 0)
		return add_namespace(build, &net, "net", GOJAIL_TREE_NET);
	if (build->fault->text[0])
		return -1;
	build->request->flags |= GOJAIL_REQUEST_NET;
	return 0;
}

/* Requests the job's own namespaces for the holder: those of its first sandbox, or new ones. Returns 0, or -1 with a
 * fault. */
static int request_namespaces(const struct build *build)
{
	const uint32_t wanted = build->jail->namespaces;
	struct record first;
	uint64_t existing;

	build->request->flags |= wanted;
	if (build->first || record_find(build->job, GOJAIL_NAMESPACES, &first) < 0)
		return 0;
	existing = strtoull(first.key, NULL, 16);
	for (int i = 0; i < SANDBOX_KINDS; i++)
		if ((existing & wanted & sandbox_kinds[i].bit) &&
		    add_namespace(build, &first, sandbox_kinds[i].name, GOJAIL_TREE_NS) < 0)
			return -1;
	return 0;
}

/* Records the first holder as the one whose namespaces are the job's. Returns 0, or -1 with a fault. */
static int write_namespace_record(const struct build *build, const struct record *holder)
{
	const uint32_t own = build->jail->namespaces & OWN_KINDS;
	struct record first = *holder, other;

	if (!own || (!build->first && record_find(build->job, GOJAIL_NAMESPACES, &other) == 0))
		return 0;
	snprintf(first.key, sizeof(first.key), "%016x", (unsigned)own);
	return record_write(build->job, GOJAIL_NAMESPACES, &first, build->fault);
}

/*
 * Attaches the rails, which Go does, and records that. A further sandbox of the job joins its network, and gets device
 * nodes of its own. Returns 0, or -1 with a fault.
 */
static int attach_net(const struct build *build, const struct record *holder)
{
	const bool is_new = build->request->flags & GOJAIL_REQUEST_NET;
	struct record net = *holder;

	if (build->go->net(holder, !is_new, build->fault) < 0)
		return -1;
	if (!is_new)
		return 0;
	snprintf(net.key, sizeof(net.key), "%016" PRIx64, job_hash(build->spec->net));
	return record_write(build->job, GOJAIL_NET, &net, build->fault);
}

/* Reports whether the job still has this node, as far as the session asks that comes before all steps. */
static bool is_allocated(const struct build *build)
{
	const struct sandbox_spec *spec = build->spec;
	static struct allocation allocation;

	return !spec->allocated || (allocation_read(build->node, spec->job, &allocation) == 0 &&
				    allocation.made == spec->allocated && allocation.uid == spec->user.uid);
}

static int fault_ended(const struct build *build)
{
	return fault_set(build->fault, "job %s has just ended", build->spec->job);
}

/* Collects what the holder is to attach and to enter. Returns 0, or -1 with a fault. */
static int collect_trees(const struct build *build)
{
	if (collect_job_mounts(build) < 0 ||
	    (build->go && build->go->trees(build->spec, build->trees, &build->request->ntrees, build->fault) < 0) ||
	    request_net(build) < 0)
		return -1;
	return request_namespaces(build);
}

/* Sets the fault after zygotes that did not give a holder, of which the last one is stuck or gone. Returns -1. */
static int fault_no_holder(const struct jail *jail, int asked, struct fault *fault)
{
	if (asked == ZYGOTE_GONE)
		return fault_ending_zygote(jail, fault);
	return fault_set(fault,
			 "the zygote of jail \"%s\" did not answer in time; is the node out of CPU time or memory? "
			 "Try again, or ask your administrator to run: gojail check",
			 jail->name);
}

/* The zygote's child could not make the sandbox: the template may be to blame. */
#define NOT_MADE (-2)

#define ZYGOTE_ATTEMPTS 3

/*
 * Asks a zygote for a holder, and one that replaces it if it is stuck or gone. Returns the socket by which the holder
 * is kept, or -1 or NOT_MADE with a fault.
 */
static int ask_for_holder(const struct build *build, struct record *holder)
{
	int asked = ZYGOTE_GONE;
	struct record zygote;
	scoped_fd talk = -1;

	for (int attempt = 0; attempt < ZYGOTE_ATTEMPTS && asked < -1; attempt++) {
		close_fd(&talk);
		if (attempt && clock_left(build->until) == 0)
			break;
		if (attempt && (asked == ZYGOTE_STUCK || attempt > 1) &&
		    zygote_replace(build->node, build->jail, &zygote, build->until, build->fault) < 0)
			return -1;
		talk = connect_to_zygote(build, &zygote);
		/* While the zygote forks, what the holder is to attach is collected. */
		if (talk == -1 || (attempt == 0 && collect_trees(build) < 0))
			return -1;
		asked = talk < 0 ? talk :
				   zygote_ask(talk, build->jail->name, build->request, build->trees,
					      zygote_find_deadline(&zygote, build->until), build->until, holder,
					      build->fault);
	}
	if (asked < -1)
		return fault_no_holder(build->jail, asked, build->fault);
	return asked < 0 ? NOT_MADE : take_fd(&talk);
}

/*
 * Builds the sandbox, from the request to the record. Returns 0, or -1 or NOT_MADE with a fault; a holder without a
 * record ends by itself.
 */
static int build_and_record(const struct build *build)
{
	const struct sandbox_spec *spec = build->spec;
	const struct jail *jail = build->jail;
	struct sandbox *sandbox = build->sandbox;
	struct fault *fault = build->fault;
	struct record holder = {0};
	int answer = ask_for_holder(build, &holder);
	scoped_fd talk = answer;

	if (talk < 0)
		return answer;
	holder.uid = spec->user.uid;
	if (spec->net && attach_net(build, &holder) < 0)
		return -1;
	sandbox->holder = record_open_pidfd(&holder);
	if (sandbox_take_from_holder(sandbox, jail, spec, &holder) < 0)
		return fault_set(fault, "the holder of the sandbox ended as soon as it was built; try again");
	memcpy(holder.key, jail->key, sizeof(holder.key));
	/* A step shows its own GPUs. Before the record: no other session enters without them. */
	if (spec->allocated && show_gpus(jail, spec->gpus, sandbox->mnt, sandbox->root, fault) < 0)
		return -1;
	/* The end of the job waits for this lock a while only: it may have given up, and noted that for the end of
	 * another job. */
	if (!is_allocated(build))
		return fault_ended(build);
	if (write_namespace_record(build, &holder) < 0 || write_beside(build) < 0 ||
	    record_write(build->job, build->name, &holder, fault) < 0)
		return -1;
	if (spec->allocated)
		note_gpus(build->node, spec->job, jail, spec->gpus);
	else
		/* Not for a session: the end may have come while this was built, and is noted as failed for that. */
		job_forget_ended(build->node, spec->job);
	return zygote_keep(talk, build->job, build->name, fault);
}

/* Builds the sandbox from a request of its own. Returns as build_and_record does. */
static int build_once(struct build *build)
{
	const struct sandbox_spec *spec = build->spec;
	struct gojail_tree trees[GOJAIL_TREES_MAX];
	struct gojail_request request = {
		.version = GOJAIL_VERSION,
		.flags = spec->root ? GOJAIL_REQUEST_ROOT : 0,
		.uid = spec->user.uid,
		.gid = spec->user.gid,
		.nmounts = build->jail->nmounts,
	};
	int result;

	memcpy(request.mounts, build->jail->mounts, sizeof(request.mounts));
	build->request = &request;
	build->trees = trees;
	result = build_and_record(build);
	for (uint32_t i = 0; i < request.ntrees; i++)
		close_fd(&trees[i].fd);
	build->request = NULL;
	build->trees = NULL;
	if (result < 0)
		sandbox_close(build->sandbox);
	return result;
}

/* Replaces the template if it is what the sandbox could not be made for. Reports whether it did; else the fault is why
 * no sandbox was made. */
static bool replace_template(const struct build *build)
{
	struct fault why = {0};
	int prepared = storage_prepare_template(build->node, build->jail, true, build->until, &why);

	if (prepared == TEMPLATE_REPLACED || why.silent)
		*build->fault = why;
	return prepared == TEMPLATE_REPLACED;
}

/* Verifies that the storage of the sandbox answers. Returns 0, or -1 with a fault. */
static int await_storage(const struct build *build)
{
	return storage_await_job(build->node, build->jail, build->spec->job, build->name, build->until, build->fault);
}

/*
 * Checks that the job still has this node: Slurm does not wait for a session. The end of the job removes the
 * allocation, and then looks for the directory of the job. So it finds the directory, which the caller has made and
 * locked, or is noticed here, and the directory is removed again. Returns 0, or -1 with a fault.
 */
static int check_allocated(const struct build *build)
{
	char path[GOJAIL_PATH_MAX + 64];

	if (is_allocated(build))
		return 0;
	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s", build->node->state, build->spec->job);
	unlinkat(build->job, GOJAIL_LOCK, 0);
	rmdir(path); /* fails if the job has had steps: its end removes them */
	return fault_ended(build);
}

/* Finds the sandbox, and shows the batch script in it. Returns 0, or -1; with a fault if a sandbox was found. */
static int find_usable(const struct build *build)
{
	if (sandbox_find(build->sandbox, build->node, build->jail, build->spec, build->fault) < 0)
		return -1;
	if (await_storage(build) == 0 && (job_has_script(build->sandbox, build->spec) || job_show_script(build) == 0))
		return 0;
	sandbox_close(build->sandbox);
	return -1;
}

/* Finds or builds the sandbox under the lock of the job's directory, which is build->job; created: it is new, and so no
 * sandbox is there. Returns 0, or -1 with a fault. */
static int find_or_build_locked(struct build *build, bool created)
{
	int owner, prepared, result;

	if (check_allocated(build) < 0 ||
	    (owner = job_check_owner(build->job, build->spec->user.uid, build->fault)) < 0)
		return -1;
	/* A process that builds a sandbox has noted the owner before, under the lock: without an owner there is no
	 * sandbox. */
	build->first = created && owner == JOB_OWNER_NOTED;
	if (!build->first && find_usable(build) == 0)
		return 0;
	if (build->fault->text[0] || (!build->first && count_sandboxes(build->job, build->fault) < 0))
		return -1;
	prepared = storage_prepare_template(build->node, build->jail, false, build->until, build->fault);
	if (prepared < 0)
		return -1;
	result = build_once(build);
	/* Once in a launch. */
	if (result == NOT_MADE && !build->fault->silent && prepared != TEMPLATE_REPLACED && replace_template(build))
		result = build_once(build);
	return result < 0 ? -1 : 0;
}

/* Does what sandbox_build does, unless an earlier job of the same number left something: then it returns -1 with a
 * fault that says so. */
static int find_or_build(struct build *build)
{
	bool created = false;
	scoped_fd lock = lock_job(build, &created);
	int result = lock < 0 ? -1 : find_or_build_locked(build, created);

	close_fd(&build->job);
	return result;
}

int sandbox_build(struct sandbox *sandbox, const struct node *node, const struct site *site, const struct jail *jail,
		  const struct sandbox_spec *spec, const struct sandbox_go *go, int64_t until, struct fault *fault)
{
	struct build build = {.node = node,
			      .site = site,
			      .jail = jail,
			      .spec = spec,
			      .go = go,
			      .until = until,
			      .fault = fault,
			      .sandbox = sandbox,
			      .job = -1};
	int result;

	sandbox_name(build.name, jail, spec);
	result = find_or_build(&build);

	/* The sandbox of a user's sessions has the number of the user, which no other user gets: what is another's
	 * there is a mistake. */
	if (result == 0 || !fault->earlier || strncmp(spec->job, GOJAIL_LOGIN, strlen(GOJAIL_LOGIN)) == 0)
		return result;
	*fault = (struct fault){0};
	if (earlier_end(node, spec->job, spec->user.uid, 0, until, fault) < 0)
		return -1;
	return find_or_build(&build);
}

int sandbox_launch(const char *verb, pid_t parent, const struct node *node, const char *jail,
		   const struct sandbox_spec *spec, int64_t until, struct fault *fault)
{
	static char groups[65536];
	struct launch launch;
	size_t used = 0;

	for (int i = 0; i < spec->user.ngroups && used < sizeof(groups); i++)
		used += (size_t)snprintf(groups + used, sizeof(groups) - used, "%s%u", i ? "," : "",
					 (unsigned)spec->user.groups[i]);
	if (used >= sizeof(groups))
		return fault_set_request(
			fault, "the user is in %d groups, more than --jail-mount, --jail-net and sessions support",
			spec->user.ngroups);
	launch_prepare(&launch, node, verb, until);
	if (parent)
		launch_add_word(&launch, "parent=%d", (int)parent);
	launch_add_word(&launch, "jail=%s", jail);
	launch_add_word(&launch, "job=%s", spec->job);
	launch_add_word(&launch, "uid=%u", (unsigned)spec->user.uid);
	launch_add_word(&launch, "gid=%u", (unsigned)spec->user.gid);
	launch_add_word(&launch, "groups=%s", groups);
	launch_add_word(&launch, "mounts=%s", spec->mounts ? spec->mounts : "");
	launch_add_word(&launch, "net=%s", spec->net ? spec->net : "");
	launch_add_word(&launch, "root=%s", spec->root ? spec->root : "");
	launch_add_word(&launch, "gpus=%s", spec->gpus ? spec->gpus : "");
	launch_add_word(&launch, "nics=%s", spec->nics ? spec->nics : "");
	launch_add_word(&launch, "script=%s", spec->script);
	launch_add_word(&launch, "allocated=%" PRId64, spec->allocated);
	return launch_run(&launch, node, until, fault);
}

int sandbox_open(struct sandbox *sandbox, const struct node *node, const struct site *site, const struct jail *jail,
		 const struct sandbox_spec *spec, struct fault *fault)
{
	int64_t until = clock_ms() + site->deadline_ms;
	char name[SANDBOX_NAME_MAX + 1];

	sandbox_name(name, jail, spec);
	if (sandbox_find(sandbox, node, jail, spec, fault) == 0) {
		/* job_has_script is a lookup in the jail's root. */
		if (storage_await_job(node, jail, spec->job, name, until, fault) == 0 && job_has_script(sandbox, spec))
			return 0;
	}
	sandbox_close(sandbox);
	if (fault->text[0] && !fault->earlier)
		return -1;
	*fault = (struct fault){0}; /* sandbox_build removes what an earlier job left */
	sandbox->is_new = true;
	if (!spec->mounts && !spec->net && !spec_is_range(spec))
		return sandbox_build(sandbox, node, site, jail, spec, NULL, until, fault);
	if (sandbox_launch("sandbox", getpid(), node, jail->name, spec, until, fault) < 0)
		return -1;
	if (sandbox_find(sandbox, node, jail, spec, fault) == 0) {
		if (storage_await_job(node, jail, spec->job, name, until, fault) ==
		    0) /* the networks may have taken a while */
			return 0;
		sandbox_close(sandbox);
		return -1;
	}
	return fault_set(fault, "the sandbox ended as soon as it was built; ask your administrator");
}
