/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/syscalls.h"
#include "release/release.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "SLURM_JAIL_PROGRAM"
#define COPIED "copied:"
#define FOUND "found:"

/* The slurm.conf of the process, a slurm_conf_t in Slurm's library. */
extern const char slurm_conf[] __attribute__((weak));

/* Reports whether srun verifies that its program exists. */
static bool has_test_exec(void)
{
	const char *parameters =
		slurm_conf && slurm_release ? MEMBER(char *, slurm_conf, slurm_release->launch_params) : NULL;

	return getenv("SLURM_TEST_EXEC") || (parameters && strstr(parameters, "test_exec"));
}

/* Reads the command line of this process, or its beginning, and adds a NUL. Returns its length, or -1. */
static ssize_t read_command_line(char *text, size_t size)
{
	scoped_fd fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);

	if (got > 0)
		text[got] = '\0';
	return got;
}

/*
 * Finds the program's name among the words of srun's command line: the first that getopt(3) did not take for an option.
 * Reports whether there is one; none is known of components of a heterogeneous step, which share one environment, and
 * of --multi-prog, which srun does not look up.
 */
static bool find_word(const char *words, ssize_t length, const char **name, bool *copied)
{
	int index = 0;

	*name = NULL;
	for (const char *word = words; word < words + length; word += strlen(word) + 1, index++) {
		if (index == optind)
			*name = word;
		if (index < optind && (strcmp(word, "--bcast") == 0 || strncmp(word, "--bcast=", 8) == 0))
			*copied = true;
		if (strcmp(word, ":") == 0 || (index < optind && strcmp(word, "--multi-prog") == 0))
			return false;
	}
	return *name != NULL;
}

void program_pass_on(void)
{
	static char words[1 << 16];
	char value[NAME_MAX + sizeof(COPIED)];
	bool copied = getenv("SLURM_BCAST") != NULL;
	const char *name;
	ssize_t length;

	unsetenv(VARIABLE);
	if (spank_context() != S_CTX_LOCAL)
		return;
	length = read_command_line(words, sizeof(words));
	if (!find_word(words, length, &name, &copied) || (!copied && !has_test_exec()))
		return;
	if (snprintf(value, sizeof(value), "%s%s", copied ? COPIED : FOUND, strchr(name, '/') ? "" : name) <
	    (int)sizeof(value))
		setenv(VARIABLE, value, 1);
}

/* Writes the path of the program that Slurm is to execute: for a directory, as _rpc_file_bcast in slurmd's req.c names
 * the file. Returns 0 or -1. */
static int find_copy(spank_t sp, const char *node, char *path, size_t size, char ***argv)
{
	uint32_t job = 0, step = 0;
	int argc = 0;
	size_t length;

	if (spank_get_item(sp, S_JOB_ARGV, &argc, argv) != ESPANK_SUCCESS || argc < 1 ||
	    spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS)
		return -1;
	length = strlen((*argv)[0]);
	if (length && (*argv)[0][length - 1] == '/')
		return snprintf(path, size, "%sslurm_bcast_%u.%u_%s", (*argv)[0], (unsigned)job, (unsigned)step, node) <
				       (int)size ?
			       0 :
			       -1;
	return snprintf(path, size, "%s", (*argv)[0]) < (int)size ? 0 : -1;
}

/* Reads which file slurmd wrote, as the user: it is the user's path. */
static void read_copy(struct program *program, spank_t sp, const char *node)
{
	char path[GOJAIL_PATH_MAX], **argv;
	uid_t uid;

	if (spank_get_item(sp, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
	    find_copy(sp, node, path, sizeof(path), &argv) < 0 || k_seteuid(uid) < 0)
		return;
	if (stat(path, &program->copy) < 0)
		program->copy.st_ino = 0;
	k_seteuid(0);
}

void program_read(struct program *program, spank_t sp, const char *node)
{
	char value[sizeof(program->name) + sizeof(COPIED)], *colon;

	if (spank_getenv(sp, VARIABLE, value, sizeof(value)) != ESPANK_SUCCESS)
		return;
	spank_unsetenv(sp, VARIABLE);
	colon = strchr(value, ':');
	if (!colon)
		return; /* not srun's: a user can send any environment */
	program->looked_up = true;
	program->copied = strncmp(value, COPIED, strlen(COPIED)) == 0;
	snprintf(program->name, sizeof(program->name), "%s", colon + 1);
	if (program->copied)
		read_copy(program, sp, node);
}

/* Checks that the copy is what the task will execute. Returns 0, or -1 with a fault. */
static int check_copy(const struct program *program, spank_t sp, const char *path, struct fault *fault)
{
	static char list[128 << 10];
	char found[GOJAIL_PATH_MAX];
	struct stat st;

	if (program->name[0] && spank_getenv(sp, "PATH", list, sizeof(list)) == ESPANK_SUCCESS &&
	    find_in_list(list, program->name, found, sizeof(found)))
		return fault_set_request(
			fault,
			"--bcast: srun copied the program %s of the host where it was started, but the jail "
			"has its own, %s; leave --bcast "
			"(SLURM_BCAST) out to run that, or write the path of the program to copy",
			program->name, found);
	if (stat(path, &st) == 0 && program->copy.st_ino && is_same_file(&st, &program->copy))
		return 0;
	return fault_set_request(
		fault,
		"--bcast: the program was copied to %s on the node, where the jail has %s; write --bcast=FILE "
		"with a file below a directory "
		"that the node and the jail share, or leave --bcast out",
		path, stat(path, &st) == 0 ? "another file" : "none");
}

int program_correct(const struct program *program, spank_t sp, const char *node, struct fault *fault)
{
	char path[GOJAIL_PATH_MAX], **argv;
	size_t whole, length = strlen(program->name);

	if (!program->looked_up || find_copy(sp, node, path, sizeof(path), &argv) < 0)
		return 0;
	if (program->copied)
		return check_copy(program, sp, path, fault);
	/* The array is Slurm's own: it takes a name without a slash for one to look up, after this hook (exec_task in
	 * its task.c). */
	whole = strlen(argv[0]);
	if (length && whole > length && argv[0][whole - length - 1] == '/' &&
	    strcmp(argv[0] + whole - length, program->name) == 0)
		argv[0] += whole - length;
	return 0;
}
