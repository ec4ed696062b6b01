/* SPDX-License-Identifier: Apache-2.0 */
/* command.c: a command of root's in the sandbox of a job, with no more rights than the job's tasks have. */
#include "common/confine.h"
#include "common/fd.h"
#include "common/inside.h"
#include "common/path.h"
#include "common/record.h"
#include "common/sandbox.h"
#include "common/storage.h"
#include "common/syscalls.h"
#include "common/variables.h"
#include "launcher/library.h"
#include "launcher/sockets.h"
#include "launcher/userns.h"
#include "launcher/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Reports whether a word is the name of a file, and no path. */
static bool is_name(const char *word) { return word[0] && word[0] != '.' && !strchr(word, '/'); }

/* Opens the sandbox that the caller's words name, which must be the user's. Returns 0, or -1 with a fault. */
static int open_sandbox(struct sandbox *sandbox, const struct node *node, const struct user *user, struct fault *fault)
{
	const char *job = library_word("job"), *name = library_word("sandbox");
	struct record holder;

	if (!is_name(job) || !is_name(name))
		return fault_set(fault, "enter needs job=, sandbox=, uid= and gid=");
	scoped_fd dir = job_open(node, job);
	if (sandbox_open_recorded(sandbox, dir, name, &holder, fault) < 0)
		return -1;
	if (holder.uid != user->uid)
		return fault_set(fault, "job %s is of user %u; a command in its sandbox runs as no other user", job,
				 (unsigned)holder.uid);
	return sandbox_open_user(sandbox, name, &holder, fault);
}

/*
 * Creates the user namespace of a command that is to be root, where the sandbox has none: uid 0 in it is the user, who
 * keeps the user's rights outside. More ids than one are those of a tree whose files cannot be mapped. Returns 0, or -1
 * with a fault.
 */
static int make_root(struct sandbox *sandbox, int proc, const struct user *user, unsigned ids, struct fault *fault)
{
	const struct idmap users = {0, user->uid, ids}, groups = {0, user->gid, ids};

	if (!ids || sandbox->user >= 0)
		return 0;
	sandbox->user = make_userns(proc, user->uid, &users, &groups, ids > 1, fault);
	return sandbox->user < 0 ? -1 : 0;
}

/* Moves this process into the sandbox; its PID namespace is for the children, setns(2). Returns 0, or -1 with a fault.
 */
static int enter_namespaces(const struct sandbox *sandbox, struct fault *fault)
{
	if (setns(sandbox->pid, CLONE_NEWPID) < 0)
		return fault_set(fault, "cannot enter the job's PID namespace: %s", strerror(errno));
	if (enter_sandbox(sandbox, fault) < 0)
		return -1;
	/* A fork into a namespace whose process 1 is gone fails. */
	return !pidfd_has_ended(sandbox->holder) ?
		       0 :
		       fault_set(fault, "sandbox %s: its holder has ended", library_word("sandbox"));
}

/* Returns the user's home directory, if the jail has it. */
static const char *find_home(void)
{
	struct stat st;

	return library_word("home")[0] == '/' && stat(library_word("home"), &st) == 0 && S_ISDIR(st.st_mode) ?
		       library_word("home") :
		       "/";
}

/* Returns the best shell that the jail has. */
static const char *find_shell(void)
{
	static const char *const better[] = {"/bin/bash", "/usr/bin/bash", NULL};
	const char *shell = find_executable(better);

	return shell ? shell : "/bin/sh";
}

/* Replaces this process's environment by the command's, in the jail. Returns 0, or -1 with a fault. */
static int set_environment(uid_t uid, const struct jail *jail, struct fault *fault)
{
	static const char *const callers[] = {"TERM", "LANG", "TZ"};
	const struct login login = {
		.uid = uid, .name = library_word("user"), .home = find_home(), .shell = find_shell()};

	if (clearenv() || login_environment_set(&own_environment, &login, false) < 0)
		return fault_set(fault, "cannot set the command's environment: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++)
		if (library_word(callers[i])[0] && setenv(callers[i], library_word(callers[i]), 1) < 0)
			return fault_set(fault, "cannot set %s: %s", callers[i], strerror(errno));
	return jail_environment_add(&own_environment, jail, fault);
}

/* Executes the program of that name, found as a shell does. Returns on failure, with errno, or 0 if there is no such
 * program. */
static void execute_program(const char *name, char **command)
{
	char path[PATH_MAX];

	if (strchr(name, '/'))
		execv(name, command);
	else if (find_in_list(getenv("PATH"), name, path, sizeof(path)))
		execv(path, command);
	else
		errno = 0;
}

/* Becomes the user for good and, in a sandbox with a user namespace, root there. Returns 0, or -1 with a fault. */
static int become_user(const struct user *user, struct sandbox *sandbox, const struct confine *confine,
		       struct fault *fault)
{
	/* setuid(2) leaves capabilities where the caller's securebits say so. */
	if (setgroups((size_t)user->ngroups, user->groups) < 0 || setgid(user->gid) < 0 || setuid(user->uid) < 0 ||
	    (user->uid && capabilities_keep(0) < 0))
		return fault_set(fault, "cannot become user %u: %s", (unsigned)user->uid, strerror(errno));
	if (enter_as_root_with_files(sandbox, confine, fault) < 0)
		return -1;
	sandbox_close(sandbox);
	return 0;
}

/* Makes the calling process, which has given up everything but root's uid, the user's command. Returns only with a
 * fault. */
static void become_command(const struct user *user, struct sandbox *sandbox, const struct confine *confine,
			   char **command, struct fault *fault)
{
	const char *tty = library_word("tty"), *home = find_home(), *name;
	char *login[] = {(char *)(uintptr_t)find_shell(), "-l", NULL};

	if (!command[0])
		command = login;
	name = command[0];
	if (setsid() < 0 || (*tty && ioctl(atoi(tty), TIOCSCTTY, 0) < 0))
		fault_set(fault, "cannot give the command its terminal: %s", strerror(errno));
	else if (become_user(user, sandbox, confine, fault) == 0)
		enter_home(home, library_word("user"), fault);
	if (fault->text[0])
		return;
	execute_program(name, command);
	fault_set(fault, "%s: cannot be run in the jail: %s", name,
		  errno ? strerror(errno) : "executable file not found in $PATH");
}

static int start_command(char **command, const struct user *user, struct sandbox *sandbox,
			 const struct confine *confine, int64_t until, struct fault *fault)
{
	int report[2];
	pid_t child;

	if (pipe2(report, O_CLOEXEC) < 0 || (child = k_fork_sibling()) < 0)
		return fault_set(fault, "cannot start the command: %s", strerror(errno));
	if (child == 0) {
		become_command(user, sandbox, confine, command, fault);
		_exit(write(report[1], fault->text, strlen(fault->text)) < 0 ? 126 : 127);
	}
	dprintf(GOJAIL_REPLY_FD, "pid %d\n", (int)child);
	close(report[1]);
	return execution_await(report[0], child, until,
			       "the command was not executed before the deadline; does the storage of the jail answer? "
			       "See: gojail check",
			       fault);
}

/*
 * Gives up what root's shell would pass on: processes that are in the jail already cannot look into this one, which
 * still has all of root's rights, and no key of the caller's session is reached (session-keyring(7)). A container may
 * refuse calls about keys, to the command as well. Returns 0, or -1 with a fault.
 */
static int leave_caller(struct fault *fault)
{
	enum { JOIN_SESSION_KEYRING = 1 }; /* keyctl(2) */

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || fcntl(GOJAIL_REPLY_FD, F_SETFD, FD_CLOEXEC) < 0)
		return fault_set(fault, "cannot prepare the command: %s", strerror(errno));
	if (syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS && errno != EPERM)
		return fault_set(fault, "cannot leave the caller's keyring: %s", strerror(errno));
	return 0;
}

/* Enters the sandbox, and gives up what the jail's tasks give up, except the uid. Returns 0, or -1 with a fault. */
static int enter_confined(struct sandbox *sandbox, const struct user *user, const struct jail *jail,
			  const struct confine *confine, int proc, const char *sockets, int *domain,
			  struct fault *fault)
{
	if (enter_namespaces(sandbox, fault) < 0 ||
	    (*sockets && hide_sockets(proc, job_is_run(library_word("job")), fault) < 0) ||
	    (strcmp(sockets, "none") == 0 && refuse_sockets(fault) < 0) ||
	    set_environment(sandbox->user < 0 ? user->uid : 0, jail, fault) < 0)
		return -1;
	return confine_inside(sandbox, confine, domain, fault);
}

int command_run(char **command, const struct node *node, const struct user *user, int64_t until, struct fault *fault)
{
	static struct confine confine;
	static const struct user root;
	unsigned ids = (unsigned)strtoul(library_word("ids"), NULL, 10);
	struct sandbox sandbox = SANDBOX_NONE;
	struct site site = {0};
	struct jail jail = {0};
	scoped_fd domain = -1;
	scoped_fd proc = -1;

	if (leave_caller(fault) < 0 || site_open(&site, node, fault) < 0 ||
	    site_find_jail(&site, library_word("jail"), &root, &jail, fault) < 0 ||
	    confine_read(&confine, node, &jail, fault) < 0 || (jail.scope && (domain = domain_open(fault)) < 0) ||
	    (proc = open_node_proc(fault)) < 0)
		return -1;
	if (open_sandbox(&sandbox, node, user, fault) < 0 || make_root(&sandbox, proc, user, ids, fault) < 0 ||
	    storage_await_job(node, &jail, library_word("job"), library_word("sandbox"), until, fault) < 0 ||
	    enter_confined(&sandbox, user, &jail, &confine, proc, library_word("sockets"), &domain, fault) < 0)
		return -1;
	close_fd(&proc);
	return start_command(command, user, &sandbox, &confine, until, fault);
}
