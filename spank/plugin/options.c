/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SPANK option carries one value to slurmstepd, the last one. --jail-mount may
 * be given several times, so the whole list travels in SLURM_JAIL_MOUNT, which
 * is a user's own way to set it as well; SLURM_JAIL likewise. Both start with
 * SLURM_, so that --export=NONE keeps them (sbatch(1), --export). What the command line
 * says replaces the variable, hence the variable always wins in slurmstepd:
 * configuration, then environment, then command line.
 *
 * A nested srun sees what the job was submitted with in the variables below
 * (plugstack.c of Slurm: spank_process_env_options) and hands it to the callback
 * before its own command line.
 *
 * Components of a heterogeneous job or step (srun, salloc and sbatch with ":", #SBATCH hetjob, --het-group): Slurm
 * parses the options of each and calls init_post_opt for each, but has one list of a plugin's options and one
 * environment for all of them (step_launch.c: spank_set_remote_options; srun.c: _setup_job_env). The last component's
 * values would be those of all. So all must have the same, and the command is refused if they do not.
 */
#include "plugin/options.h"

#include "common/fault.h"
#include "plugin/program.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In slurmstepd: the options of the step. Else: what the component has on its command line, or in its batch script. */
static struct step_options given;

/* One option in srun, sbatch and salloc. */
struct option {
	const char *name, *variable;
	const char *inherited; /* the variable in which a nested command sees what the job was submitted with */
	char *given;
	char *before; /* what components without the option have: of the environment, before anything is set there */
	char *first;  /* what the first component has */
	bool seen;    /* the callback has been given what is inherited, for this component */
};

#define INHERITED "SLURM_SPANK__SLURM_SPANK_OPTION_gojail_"

static struct option jail = {"--jail", OPTIONS_ENV_JAIL, INHERITED "jail", given.jail, NULL, NULL, false};
static struct option mounts = {"--jail-mount", OPTIONS_ENV_MOUNT, INHERITED "jail_mount", given.mounts, NULL, NULL,
			       false};
static struct option net = {"--jail-net", OPTIONS_ENV_NET, INHERITED "jail_net", given.net, NULL, NULL, false};
static struct option root = {"--jail-root", OPTIONS_ENV_ROOT, INHERITED "jail_root", given.root, NULL, NULL, false};

static bool jail_name_ok(const char *name)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	static const char rest[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

	return name[0] && strchr(first, name[0]) && strlen(name) <= GOJAIL_NAME_MAX &&
	       strspn(name, rest) == strlen(name);
}

/* Returns what is wrong with a SRC:DST[:ro|:rw], or NULL; whether the site permits it is for the node to judge. */
static const char *mount_problem(const char *entry, size_t length)
{
	char text[GOJAIL_MOUNTS_MAX + 1], *destination, *mode;

	snprintf(text, sizeof(text), "%.*s", (int)length, entry);
	destination = strchr(text, ':');
	if (!destination)
		return "it is not SOURCE:DESTINATION";
	*destination++ = '\0';
	mode = strchr(destination, ':');
	if (mode)
		*mode++ = '\0';
	if (text[0] != '/' || destination[0] != '/')
		return "both paths must start with /";
	if (mode && strcmp(mode, "ro") && strcmp(mode, "rw"))
		return "only :ro or :rw may follow the destination";
	if (strlen(text) >= GOJAIL_PATH_MAX || strlen(destination) >= GOJAIL_PATH_MAX)
		return "a path is too long";
	return NULL;
}

/* Reports a bad option to the user who wrote it. Returns -1. */
__attribute__((format(printf, 1, 2))) static int report_bad_option(const char *format, ...)
{
	char text[GOJAIL_MOUNTS_MAX + 300];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	make_printable(text);
	slurm_error("gojail: %s", text);
	return -1;
}

static int check_mounts(const char *list)
{
	const char *problem = *list ? NULL : "it is empty";

	for (const char *at = list; *at && !problem;) {
		size_t length = strcspn(at, ",");

		problem = mount_problem(at, length);
		at += length + (at[length] == ',');
	}
	if (!problem)
		return 0;
	return report_bad_option("--jail-mount=%s: %s; write it as --jail-mount=/data/set:/mnt or "
				 "--jail-mount=/data/set:/mnt:ro",
				 list, problem);
}

static int check_jail(const char *name)
{
	if (jail_name_ok(name))
		return 0;
	return report_bad_option("--jail=%s is not the name of a jail; give a jail's name, or \"none\"", name);
}

static int check_net(const char *label)
{
	if (jail_name_ok(label))
		return 0;
	return report_bad_option("--jail-net=%s is not a label of rails; give a label of this site, or \"none\"",
				 label);
}

static int check_root(const char *mode)
{
	static const char *const known[] = {"self", "range", "any", "none"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(mode, known[i]) == 0)
			return 0;
	return report_bad_option(
		"--jail-root=%s is not a mode; write --jail-root alone, or --jail-root=self, =range or =none", mode);
}

/*
 * Reports whether a callback is about what is inherited. Slurm calls it once for each component; from the second
 * component on, salloc and sbatch pass the first one's option there.
 */
static bool is_inherited(struct option *option, const char *argument, int remote)
{
	const char *value = getenv(option->inherited);

	if (remote || option->seen || !value || !argument || strcmp(value, argument))
		return false;
	option->seen = true;
	return true;
}

static int on_jail(int value, const char *argument, int remote)
{
	(void)value;
	if (!argument || (!remote && check_jail(argument) < 0))
		return -1;
	if (!is_inherited(&jail, argument, remote))
		snprintf(given.jail, sizeof(given.jail), "%s", argument);
	return 0;
}

static int on_net(int value, const char *argument, int remote)
{
	(void)value;
	if (!argument || (!remote && check_net(argument) < 0))
		return -1;
	if (!is_inherited(&net, argument, remote))
		snprintf(given.net, sizeof(given.net), "%s", argument);
	return 0;
}

/*
 * Returns the mode of an argument. Without a value the option means what the jail allows. Slurm passes NULL here, and
 * "" or "(null)" to slurmstepd and to what a job starts.
 */
static const char *read_mode(const char *argument)
{
	return !argument || !argument[0] || strcmp(argument, "(null)") == 0 ? "any" : argument;
}

/* "" that a user wrote, as in --jail-root=$MODE, is refused. */
static int on_root(int value, const char *argument, int remote)
{
	(void)value;
	if (is_inherited(&root, argument, remote))
		return check_root(read_mode(argument));
	if (argument && !argument[0] && !remote)
		return check_root("");
	argument = read_mode(argument);
	if (!remote && check_root(argument) < 0)
		return -1;
	snprintf(given.root, sizeof(given.root), "%s", argument);
	return 0;
}

static int on_mount(int value, const char *argument, int remote)
{
	size_t used = remote ? 0 : strlen(given.mounts);

	(void)value;
	if (!argument || (!remote && check_mounts(argument) < 0))
		return -1;
	if (is_inherited(&mounts, argument, remote))
		return 0;
	if (used + strlen(argument) + 2 > sizeof(given.mounts)) {
		slurm_error("gojail: --jail-mount: the list is longer than %d characters", GOJAIL_MOUNTS_MAX);
		return -1;
	}
	snprintf(given.mounts + used, sizeof(given.mounts) - used, "%s%s", used ? "," : "", argument);
	return 0;
}

static struct spank_option options[] = {
	{"jail", "NAME",
	 "run the tasks with the root file system (jail) NAME of this site instead of the node's "
	 "own; \"none\": with the node's own, where the site allows it",
	 1, 0, on_jail},
	{"jail-mount", "SRC:DST[:ro]",
	 "show the node's directory or file SRC at DST in the jail, read-only with :ro; may be "
	 "given several times",
	 1, 1, on_mount},
	{"jail-net", "LABEL",
	 "give the job a network of its own: a VF on each rail with that label; \"none\": the node's "
	 "network. All steps of a job share it",
	 1, 2, on_net},
	{"jail-root", "[MODE]",
	 "be root (uid 0) in the jail, and nobody outside, where the site allows it; self: one's own "
	 "files are root's; range: packages can be installed; none: not root",
	 2, 3, on_root},
};

int options_register(spank_t sp)
{
	given.jail[0] = given.net[0] = given.root[0] = given.mounts[0] = '\0';
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (spank_option_register(sp, &options[i]) != ESPANK_SUCCESS)
			return -1;
	return 0;
}

/* Reads what a component without the option has. Returns 0, or -1 without memory. */
static int read_before(struct option *option)
{
	const char *value = getenv(option->variable);

	if ((!value || !value[0]) && (value = getenv(option->inherited)) && option == &root)
		value = read_mode(value);
	option->before = strdup(value ? value : "");
	return option->before ? 0 : -1;
}

/* Checks that this component has what the first one has. Returns 0 or -1. */
static int check_first(struct option *option, const char *value)
{
	if (!option->first)
		return (option->first = strdup(value)) ? 0 : -1;
	if (strcmp(option->first, value) == 0)
		return 0;
	return report_bad_option("%s: a component of a heterogeneous job has %s%.200s%s, another %s%.200s%s; Slurm "
				 "passes one value to all of them: write the "
				 "same for each component, or give each step its own, with srun --het-group=N %s=...",
				 option->name, option->first[0] ? "\"" : "no value", option->first,
				 option->first[0] ? "\"" : "", value[0] ? "\"" : "no value", value,
				 value[0] ? "\"" : "", option->name);
}

/*
 * Sets the variable to what the command line has, or checks the one in the environment, and has Slurm tell the job's
 * Prolog, as SPANK_VARIABLE. Ends the component. Returns 0 or -1.
 */
static int pass_on(spank_t sp, struct option *option, int (*check)(const char *))
{
	const char *value = option->given;

	if (!option->before && read_before(option) < 0)
		return -1;
	if (!value[0])
		value = option->before;
	if ((value[0] && check(value) < 0) || check_first(option, value) < 0 ||
	    (option->given[0] && setenv(option->variable, value, 1) < 0))
		return -1;
	/*
	 * What fails here concerns sessions before the first step alone. That the jail is there, if empty, tells the
	 * Prolog that the job comes from a host with this plugin.
	 */
	if (value[0] || option == &jail)
		spank_job_control_setenv(sp, option->variable, value, 1);
	else
		spank_job_control_unsetenv(sp, option->variable);
	option->given[0] = '\0';
	option->seen = false;
	return 0;
}

int options_pass_on(spank_t sp)
{
	program_pass_on();
	return pass_on(sp, &jail, check_jail) < 0 || pass_on(sp, &mounts, check_mounts) < 0 ||
			       pass_on(sp, &net, check_net) < 0 || pass_on(sp, &root, check_root) < 0 ?
		       -1 :
		       0;
}

/* Reads the variable of the step, else the option (see the top of this file). Returns 0, or -1 if it is too long. */
static int read_option(spank_t sp, const char *variable, const char *option, char *value, size_t size)
{
	int error = (int)spank_getenv(sp, variable, value, (int)size);

	if (error && error != ESPANK_ENV_NOEXIST)
		return -1;
	if (error || !value[0])
		snprintf(value, size, "%s", option);
	return 0;
}

int options_read(spank_t sp, struct step_options *options)
{
	if (read_option(sp, OPTIONS_ENV_JAIL, given.jail, options->jail, sizeof(options->jail)) < 0 ||
	    read_option(sp, OPTIONS_ENV_MOUNT, given.mounts, options->mounts, sizeof(options->mounts)) < 0 ||
	    read_option(sp, OPTIONS_ENV_NET, given.net, options->net, sizeof(options->net)) < 0 ||
	    read_option(sp, OPTIONS_ENV_ROOT, given.root, options->root, sizeof(options->root)) < 0)
		return -1;
	return 0;
}
