/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gojail-session: runs a user's session on the node, such as one of ssh, in the sandbox of the user's job there.
 *
 * It is the user's login shell or sshd's ForceCommand, set-user-ID root, and anybody may run it with any arguments,
 * environment, descriptors and limits. Its steps in order, and the rights that it has in each:
 *
 *   root by the bit      caller_read       drop the caller's attributes
 *                        place_check       fail unless this is root on the node itself
 *   root, whom the       caller_leave      eight capabilities are left; the user cannot signal or trace this process
 *   user cannot reach    place_find        find gojail, by nothing that the caller could choose
 *                        site_open         the site file; gojail-launcher is started if that is out of date
 *                        account_read      a child that is the user for good asks the node's name service
 *                        jobs_choose       by the real uid, and SLURM_JOB_ID and SLURM_JAIL among that user's own jobs
 *                        jobs_open         the namespaces of the holder
 *                        login_open        instead of these two on a login node; the first session has gojail-launcher
 *                                          build the sandbox
 *                        storage_await_job whether the storage of the sandbox answers
 *                        fork              into the job's PID namespace
 *   the child, root      enter_sandbox     enter all other namespaces
 *                        confine           drop what a task drops; the capabilities go with the uid
 *                        caller_become     the user for good
 *   the child, user      agent_offer       a socket in the job's /tmp for a forwarded ssh-agent
 *                        shell_execute     the first file of the jail that is executed
 *   the parent, user     wait_for_end      wait for the child, on the node
 *
 * The program is set-user-ID and does not have file capabilities: CAP_SYS_ADMIN, which setns(2) requires, is as much as
 * root; the user cannot signal a process whose real and effective uid are root's (kill(2)); the state directory and the
 * launcher are root's; and archives and copies lose file capabilities. No name service, start-up file or locale of the
 * jail is read before the uid is the user's. The supplementary groups are the caller's and are never changed.
 *
 * No lock is taken but a shared one of the user's own sandbox on a login node, so that a session that hangs, or that
 * its user stops, delays nobody else.
 */
#include "common/clock.h"
#include "common/confine.h"
#include "common/fd.h"
#include "common/inside.h"
#include "common/path.h"
#include "common/record.h"
#include "common/storage.h"
#include "common/variables.h"
#include "session/account.h"
#include "session/agent.h"
#include "session/caller.h"
#include "session/jobs.h"
#include "session/place.h"
#include "session/shell.h"
#include "session/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Exit code if the session cannot be started. */
#define REFUSED 1

/*
 * Deadline of all steps before the user's program is executed, in seconds, beside those that have the site's: building
 * a sandbox, and what comes after it.
 */
#define DEADLINE 60

/* Returns the deadline with those two, which gojail.toml says. */
static unsigned int compute_deadline(const struct site *site)
{
	return DEADLINE + 2 * ((unsigned int)site->deadline_ms / 1000 + 1);
}

struct session {
	struct caller caller;
	struct node node;
	struct site site;
	struct account account;
	struct choice choice;
	struct jail jail;
	struct confine confine;
	struct sandbox sandbox;
	int lock; /* of login_open; -1: the sandbox is a job's */
	char net_variables[NET_LINES_MAX];
	struct fault notice; /* for the user, who gets it from the child, when that is the user's */
};

/* Reports whether the job has a network namespace of its own. Called before it is entered. */
static bool has_own_network(const struct sandbox *sandbox)
{
	struct stat node, job;

	return stat("/proc/self/ns/net", &node) == 0 && fstat(sandbox->net, &job) == 0 && !is_same_file(&node, &job);
}

/* Enters the sandbox and executes the user's program; called by the child, as root in the job's PID namespace. Returns
 * only with a fault. */
static void run_in_sandbox(struct session *session, char **argv, const struct terminal *terminal, int *domain, int link,
			   struct fault *fault)
{
	struct sandbox *sandbox = &session->sandbox;
	struct program program = {.argv = argv,
				  .jail = &session->jail,
				  .job = session->lock < 0 ? session->choice.job : NULL,
				  .variables = session->net_variables,
				  .own_network = has_own_network(sandbox)};

	if (wait_begin_session(terminal, fault) < 0 || enter_sandbox(sandbox, fault) < 0)
		return;
	if (pidfd_has_ended(sandbox->holder)) {
		fault_set(fault, "%s has just ended", session->choice.title);
		return;
	}
	if (confine_inside(sandbox, &session->confine, domain, fault) < 0 || caller_become(&session->caller, fault) < 0)
		return;
	if (session->notice.text[0])
		dprintf(STDERR_FILENO, "gojail: %s\n", session->notice.text);
	agent_offer(&session->caller, link);
	if (enter_as_root_with_files(sandbox, &session->confine, fault) < 0)
		return;
	sandbox_close(sandbox);
	caller_restore_signals();
	shell_execute(&program, &session->account, &session->caller, fault);
}

/*
 * Forks a child into a PID namespace. Later children of this process are in the node's PID namespace again: they have
 * the node's mounts, and processes of the job must not see them. Returns as fork(2) does.
 */
static pid_t fork_into(int namespace)
{
	scoped_fd own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	pid_t child;

	if (own < 0 || setns(namespace, CLONE_NEWPID) < 0)
		return -1;
	child = caller_fork();
	if (child > 0 && setns(own, CLONE_NEWPID) < 0) {
		kill(child, SIGKILL);
		return -1;
	}
	return child;
}

/* Opens the sandbox of the job that was chosen, which is built first where no step has begun. Returns 0, or -1 with a
 * fault. */
static int open_job_sandbox(struct session *session, struct fault *fault)
{
	static const struct user root;

	/* As root: the user may use the jail, or the job could not have a sandbox of it. */
	if ((!session->choice.name[0] &&
	     allocated_build(&session->choice, &session->node, &session->site, &session->caller, fault) < 0) ||
	    site_find_jail(&session->site, session->choice.jail, &root, &session->jail, fault) < 0 ||
	    jobs_open(&session->sandbox, &session->choice, &session->node, session->caller.uid, fault) < 0)
		return -1;
	return net_environment_read(&session->node, session->choice.job, true, session->net_variables,
				    sizeof(session->net_variables), fault);
}

/* Opens, or builds, the sandbox of the user's sessions on this login node. Returns 0, or -1 with a fault. */
static int open_login_sandbox(struct session *session, struct fault *fault)
{
	session->lock = login_open(&session->sandbox, &session->choice, &session->node, &session->site,
				   &session->caller, fault);
	return session->lock < 0 ? -1 : 0;
}

/* Starts the user's program in the sandbox that open_sandbox opens, and ends with it. Returns only with a fault. */
static void run_in_namespaces(struct session *session, int (*open_sandbox)(struct session *, struct fault *),
			      char **argv, struct fault *fault)
{
	scoped_fd domain = -1;
	int report[2], link[2];
	struct terminal terminal;
	int64_t until;
	pid_t child;

	if (open_sandbox(session, fault) < 0 ||
	    confine_read(&session->confine, &session->node, &session->jail, fault) < 0 ||
	    (session->jail.scope && (domain = domain_open(fault)) < 0))
		return;
	until = clock_ms() + session->site.deadline_ms; /* building has a deadline of its own */
	/* Without a key, storage_await_job does not replace a zygote that is stuck: that takes a lock, and only steps
	 * do it. */
	session->jail.key[0] = '\0';
	if (storage_await_job(&session->node, &session->jail, session->choice.job, session->choice.name, until, fault) <
	    0)
		return;
	if (session->lock >= 0)
		login_refresh_munge(&session->sandbox, &session->choice, &session->node, &session->caller,
				    &session->jail, until, &session->notice);
	if (pipe2(report, O_CLOEXEC) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) < 0) {
		fault_set(fault, "cannot start the session: %s", strerror(errno));
		return;
	}
	terminal = wait_release_terminal();
	child = fork_into(session->sandbox.pid);
	if (child < 0) {
		/* ENOMEM: process 1 of the PID namespace has ended (pid_namespaces(7)). */
		fault_set(fault, "cannot start the session in %s: %s", session->choice.title,
			  errno == ENOMEM ? "it has just ended" : strerror(errno));
		return;
	}
	if (child == 0) {
		run_in_sandbox(session, argv, &terminal, &domain, link[1], fault);
		_exit(write(report[1], fault->text, strlen(fault->text)) < 0 ? 126 : 127);
	}
	close(report[1]);
	close(link[1]);
	if (execution_await(report[0], child, until,
			    "the shell was not executed before the deadline; the storage of the jail may hang: ask "
			    "your administrator",
			    fault) < 0)
		return;
	caller_clear_deadline();
	wait_for_end(child, &session->caller, session->sandbox.holder, link[0], session->lock, fault);
}

/* Executes the user's shell, or another one that is given, on the node. Returns only with a fault. */
static void stay_on_node(struct session *session, char **argv, const char *shell, struct fault *fault)
{
	struct program program = {.argv = argv, .shell = shell};

	caller_clear_deadline();
	if (caller_become(&session->caller, fault) < 0)
		return;
	caller_restore_signals();
	shell_execute(&program, &session->account, &session->caller, fault);
}

/* Runs the session in a job's sandbox, or on the node. Returns only with a fault. */
static void begin_session(struct session *session, char **argv, struct fault *fault)
{
	struct site *site = &session->site;
	struct fault at_login = {0};
	int found, login;

	caller_set_deadline(&session->caller, DEADLINE);
	if (place_find(&session->node, fault) < 0 || site_open(site, &session->node, fault) < 0)
		return;
	caller_set_deadline(&session->caller, compute_deadline(site));
	if (account_read(&session->account, &session->caller, &site->session, fault) < 0)
		return;
	if (account_is_exempt(session->caller.uid, session->caller.gid, &site->session)) {
		stay_on_node(session, argv, NULL, fault);
		return;
	}
	/* A command of root's is no session, and its place is not a job's: on the node, by a shell that reads no file
	 * of the user's. */
	if (!site->login.linger_ms && starter_is_root(argv)) {
		stay_on_node(session, argv, "/bin/sh", fault);
		return;
	}
	found = jobs_choose(&session->choice, &session->node, site, session->caller.uid,
			    caller_variable(&session->caller, "SLURM_JOB_ID"),
			    caller_variable(&session->caller, "SLURM_JAIL"), fault);
	if (found > 0) {
		run_in_namespaces(session, open_job_sandbox, argv, fault);
		return;
	}
	/* On a login node, SLURM_JOB_ID may name a job elsewhere, and SLURM_JAIL a jail for the session. */
	login = login_choose(&session->choice, site, &session->caller, session->account.name, &session->jail,
			     &at_login);
	if (login != 0)
		*fault = at_login;
	if (login > 0)
		run_in_namespaces(session, open_login_sandbox, argv, fault);
	else if (login == 0 && found == 0 && site->session.node_without_job)
		stay_on_node(session, argv, NULL, fault);
	else if (login == 0 && found == 0 && session->choice.foreign[0])
		jobs_fault_foreign(&session->choice, fault);
	else if (login == 0 && found == 0)
		fault_set(fault, "you have no job in a jail on this node; start a job, or a step of your job, on this "
				 "node and connect again");
}

int main(int argc, char **argv)
{
	static struct session session = {.sandbox = SANDBOX_NONE, .lock = -1};
	struct fault fault = {0};

	(void)argc; /* may be 0 in kernels before 5.18; argv ends with NULL all the same */
	if (caller_read(&session.caller, &fault) == 0 && place_check(&fault) == 0 &&
	    caller_leave(&session.caller, &fault) == 0)
		begin_session(&session, argv, &fault);
	if (!shell_is_xauth(argv)) /* the session that follows reports the same */
		caller_report(&session.caller, fault.text[0] ? fault.text : "the session could not be started");
	return REFUSED;
}
