/* SPDX-License-Identifier: Apache-2.0 */
#include "session/shell.h"

#include "common/inside.h"
#include "common/variables.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool shell_is_xauth(char *const *argv)
{
	return argv[0] && argv[1] && strcmp(argv[1], "-q") == 0 && argv[2] && strcmp(argv[2], "-") == 0 && !argv[3];
}

/* Executes xauth, which reads a cookie from stdin and writes it to the user's home directory. If that fails, prints a
 * line. */
__attribute__((noreturn)) static void execute_xauth(const struct program *program)
{
	static const char *const programs[] = {"/usr/bin/xauth", "/usr/bin/X11/xauth", NULL};
	const char *xauth = find_executable(programs);

	if (program->own_network)
		_exit(0); /* the session reports that the cookie is of no use */
	if (xauth)
		execv(xauth, program->argv);
	dprintf(STDERR_FILENO,
		"gojail: X11 programs will be refused by your X server: cannot execute xauth in the jail: %s; ask your "
		"administrator to install it\n",
		strerror(errno));
	_exit(1);
}

/* Removes DISPLAY if it cannot be reached, after a line about it: sshd listens on the node's localhost. */
static void drop_display(void)
{
	const char *display = getenv("DISPLAY");

	if (!display || strncmp(display, "localhost:", 10))
		return;
	dprintf(STDERR_FILENO, "gojail: X11 is not forwarded: the job has a network of its own (--jail-net), and sshd "
			       "listens in the node's\n");
	unsetenv("DISPLAY");
}

/* Sets the variables by which srun starts steps of the job, in the jail of the session. Returns 0 or -1. */
static int set_job(const struct program *program)
{
	return setenv("SLURM_JOB_ID", program->job, 1) < 0 || setenv("SLURM_JAIL", program->jail->name, 1) < 0 ? -1 : 0;
}

/* Sets the environment of a login, with the variables that were saved of the caller's. Returns 0, or -1 with a fault.
 */
static int set_environment(const struct program *program, const struct account *account, const struct caller *caller,
			   const char *shell, struct fault *fault)
{
	/* The process's own uid: the user is root in a job with --jail-root. */
	const struct login login = {.uid = geteuid(), .name = account->name, .home = account->home, .shell = shell};

	for (char *const *at = caller->variables; *at; at++)
		if (strncmp(*at, "SSH_ORIGINAL_COMMAND=", 21) && putenv(*at))
			return fault_set(fault, "cannot set the session's environment: %s", strerror(errno));
	if (login_environment_set(&own_environment, &login, false) < 0 || (program->job && set_job(program) < 0))
		return fault_set(fault, "cannot set the session's environment: %s", strerror(errno));
	if (program->variables && net_environment_add(&own_environment, program->variables, fault) < 0)
		return -1;
	return program->jail ? jail_environment_add(&own_environment, program->jail, fault) : 0;
}

/* Returns the path of the user's shell; else that of another shell, after a line about it; else NULL. */
static const char *find_shell(const struct account *account)
{
	const char *const shells[] = {account->shell, "/bin/bash", "/bin/sh", NULL};
	const char *shell = find_executable(shells);

	if (shell && strcmp(shell, account->shell))
		dprintf(STDERR_FILENO, "gojail: the jail has no %s; starting %s\n", account->shell, shell);
	return shell;
}

/*
 * Replaces the path of an sftp server that does not exist here, or internal-sftp, by the path of the server that does:
 * sshd's configuration names one path, and distributions differ. Returns the command, or NULL with a fault if there is
 * no server.
 */
static char *find_sftp(char *command, struct fault *fault)
{
	static const char *const servers[] = {"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server",
					      "/usr/lib/ssh/sftp-server", "/usr/libexec/sftp-server", NULL};
	size_t length = strcspn(command, " ");
	char *word = strndup(command, length), *slash = word ? strrchr(word, '/') : NULL, *found = NULL;
	const char *server;

	if (!word || (strcmp(word, "internal-sftp") && (!slash || strcmp(slash, "/sftp-server"))) ||
	    access(word, X_OK) == 0) {
		free(word);
		return command;
	}
	free(word);
	server = find_executable(servers);
	if (!server)
		fault_set(fault, "sftp: the jail has no sftp-server; ask your administrator to install "
				 "openssh-sftp-server in the jail, or use scp -O or rsync");
	else if (asprintf(&found, "%s%s", server, command + length) < 0)
		found = NULL;
	return found;
}

/* Reports whether the arguments are -c and this program, as sshd passes them if this program is both login shell and
 * ForceCommand. */
static bool is_own_name(char *const *argv)
{
	const char *slash;

	if (!argv[1] || strcmp(argv[1], "-c") || !argv[2] || argv[3])
		return false;
	slash = strrchr(argv[2], '/');
	return strcmp(slash ? slash + 1 : argv[2], GOJAIL_SESSION) == 0;
}

void shell_execute(const struct program *program, const struct account *account, const struct caller *caller,
		   struct fault *fault)
{
	const char *shell = program->shell ? program->shell : find_shell(account),
		   *original = caller_variable(caller, "SSH_ORIGINAL_COMMAND");
	bool has_arguments = program->argv[0] && program->argv[1] && !is_own_name(program->argv);
	char name[GOJAIL_PATH_MAX + 1] = "-",
				    *command[] = {name + 1, (char *)(uintptr_t) "-c", (char *)(uintptr_t)original,
						  NULL},
				    **argv = command;

	if (!shell) {
		fault_set(fault, "the jail has no shell: neither %s nor /bin/sh", account->shell);
		return;
	}
	if (set_environment(program, account, caller, program->shell ? account->shell : shell, fault) < 0)
		return;
	if (shell_is_xauth(program->argv))
		execute_xauth(program);
	if (program->own_network)
		drop_display();
	enter_home(account->home, account->name, fault);
	snprintf(name + 1, sizeof(name) - 1, "%s", strrchr(shell, '/') + 1);
	if (has_arguments) {
		argv = program->argv;
		argv[0] = name + 1;
	} else if (!original) {
		command[0] = name; /* a login shell */
		command[1] = NULL;
	}
	if (argv[1] && strcmp(argv[1], "-c") == 0 && argv[2])
		argv[2] = find_sftp(argv[2], fault);
	if (fault->text[0])
		return;
	execv(shell, argv);
	fault_set(fault, "cannot execute %s: %s", shell, strerror(errno));
}
