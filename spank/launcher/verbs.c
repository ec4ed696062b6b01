/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs.h"

#include "common/clock.h"
#include "common/job.h"
#include "common/record.h"
#include "common/syscalls.h"
#include "launcher/library.h"
#include "launcher/userns.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* Goes on as a child of init, which no step waits for or kills. */
static void detach(void)
{
	pid_t child = fork();

	if (child < 0) {
		dprintf(GOJAIL_REPLY_FD, "error cannot fork: %s\n", strerror(errno));
		_exit(1);
	}
	if (child > 0) {
		dprintf(GOJAIL_REPLY_FD, "pid %d %" PRIu64 "\n", (int)child, read_start_time(child));
		_exit(0);
	}
	setsid();
}

static int open_user_trees(const struct sandbox_spec *spec, struct gojail_tree *trees, uint32_t *count,
			   struct fault *fault)
{
	if (spec_is_range(spec) && range_add_trees(spec, trees, count, fault) < 0)
		return -1;
	if (!spec->mounts)
		return 0;
	return library_add_trees("mounts", trees, count, GOJAIL_TREE_EXACT, fault);
}

static int attach_net(const struct record *holder, bool attached, struct fault *fault)
{
	if (library_set_word(fault, "holder=%d", (int)holder->pid) < 0)
		return -1;
	return library_call(attached ? "netfiles" : "net", fault) ? 0 : -1;
}

/*
 * Lets this process end with the one that asked for the sandbox: that may be killed, and the end of the job come and go
 * before the sandbox exists, which nobody would end then. `gojail run` does not name itself: the thread that forked may
 * end before the process.
 */
static int end_with_caller(struct fault *fault)
{
	pid_t parent = (pid_t)atoi(library_word("parent"));

	if (parent && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		return fault_set(fault, "the process that asked for the sandbox has ended");
	return 0;
}

/* Reads the user from the words uid, gid and groups. Returns 0, or -1 if uid or gid is missing. */
static int read_user(struct user *user)
{
	static gid_t groups[65536];
	char *list = (char *)(uintptr_t)library_word("groups");

	*user = (struct user){.uid = (uid_t)strtoul(library_word("uid"), NULL, 10),
			      .gid = (gid_t)strtoul(library_word("gid"), NULL, 10),
			      .groups = groups};
	while (*list && user->ngroups < (int)(sizeof(groups) / sizeof(groups[0]))) {
		groups[user->ngroups++] = (gid_t)strtoul(list, &list, 10);
		list += *list == ',';
	}
	return library_word("uid")[0] && library_word("gid")[0] ? 0 : -1;
}

/* Builds the sandbox that the words name, or finds it. One that lasts may outlive munged, and is shown its new socket.
 * Returns 0, or -1 with a fault. */
static int build_sandbox(const struct node *node, bool lasting, int64_t until, struct fault *fault)
{
	static const struct sandbox_go go = {.trees = open_user_trees, .net = attach_net, .script = range_map_script};
	struct sandbox built = SANDBOX_NONE;
	struct sandbox_spec spec = {.mounts = library_word("mounts")[0] ? library_word("mounts") : NULL,
				    .net = library_word("net")[0] ? library_word("net") : NULL,
				    .root = library_word("root")[0] ? library_word("root") : NULL,
				    .gpus = library_word("gpus"),
				    .allocated = strtoll(library_word("allocated"), NULL, 10)};
	static const struct user root = {0};
	const struct user *asking = library_word("any")[0] ? &root : &spec.user;
	struct site site = {0};
	struct jail jail;
	int known = read_user(&spec.user);

	snprintf(spec.job, sizeof(spec.job), "%s", library_word("job"));
	snprintf(spec.script, sizeof(spec.script), "%s", library_word("script"));
	if (end_with_caller(fault) < 0)
		return -1;
	if (!spec.job[0] || known < 0)
		return fault_set(fault, "sandbox needs job=, uid= and gid=");
	if (site_open(&site, node, fault) < 0 || site_find_jail(&site, library_word("jail"), asking, &jail, fault) < 0)
		return -1;
	if (library_word("sockets")[0])
		jail.munge.path[0] = '\0';
	if (sandbox_build(&built, node, &site, &jail, &spec, &go, until, fault) < 0)
		return -1;
	if (lasting)
		munge_refresh(&built, node, &jail, spec.job, until);
	sandbox_close(&built);
	return 0;
}

/* Builds the sandbox of a job without steps, if there is none, and if Slurm says that the job has this node. Returns 0,
 * or -1 with a fault. */
static int serve_session(const struct node *node, int64_t until, struct fault *fault)
{
	if (library_call_in_child("allocated", until, fault) < 0)
		return -1;
	if (library_set_word(fault, "deadline=%d", clock_left(until)) < 0)
		return -1;
	return build_sandbox(node, false, until, fault);
}

/* Builds the sandbox of a user's sessions, if there is none, and has it watched. Returns 0, or -1 with a fault. */
static int serve_login(const struct node *node, int64_t until, struct fault *fault)
{
	struct site site = {0};
	struct user user;

	if (read_user(&user) < 0)
		return fault_set(fault, "login needs job=, uid= and gid=");
	if (login_prepare(node, &site, library_word("job"), user.uid, until, fault) < 0 ||
	    build_sandbox(node, true, until, fault) < 0)
		return -1;
	return login_watch(node, &site, library_word("job"), fault);
}

static int run_command(const struct node *node, int64_t until, struct fault *fault)
{
	struct user user;

	if (read_user(&user) < 0)
		return fault_set(fault, "enter needs job=, sandbox=, uid= and gid=");
	return command_run(library_command(), node, &user, until, fault);
}

bool verb_is_enter(const char *verb) { return strcmp(verb, "enter") == 0; }

bool verb_is_detached(const char *verb)
{
	return strcmp(verb, "boot") == 0 || strcmp(verb, "clean") == 0 || strcmp(verb, "ended") == 0;
}

const char *verb_note(const char *verb) { return strcmp(verb, "epilog") == 0 ? library_answer() : ""; }

/* Leaves CPU and disk to the jobs: class 3 of ioprio_set(2) is idle. */
static void lower_priority(void)
{
	enum { OF_PROCESS = 1, IDLE = 3 << 13 };

	setpriority(PRIO_PROCESS, 0, 19);
	syscall(SYS_ioprio_set, OF_PROCESS, 0, IDLE);
}

int verb_run(const char *verb, const struct node *node, int64_t until, struct fault *fault)
{
	if (verb_is_enter(verb))
		return run_command(node, until, fault); /* the command stays in the caller's cgroup */
	if (strcmp(verb, "template") == 0) {
		detach();
		return template_serve(node, until, fault);
	}
	if (verb_is_detached(verb))
		detach();
	if (strcmp(verb, "clean") == 0 || strcmp(verb, "ended") == 0)
		lower_priority();
	if (strcmp(verb, "ended") == 0)
		return ended_report(node, until, fault);
	if (strcmp(verb, "storage") == 0)
		return sandbox_storage_probe(node, until, fault);
	if (strcmp(verb, "sandbox") == 0)
		return build_sandbox(node, false, until, fault);
	if (strcmp(verb, "session") == 0)
		return serve_session(node, until, fault);
	if (strcmp(verb, "login") == 0)
		return serve_login(node, until, fault);
	if (strcmp(verb, "boot") == 0)
		munge_start_refresh(node); /* slurmd has started: its own socket is a new one, and munge's may be */
	return library_call_in_child(verb, until, fault);
}
