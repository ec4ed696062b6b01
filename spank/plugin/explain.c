/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c: says what Slurm's own errors about a step's files and working directory mean in a jail. */
#include "common/fault.h"
#include "common/fd.h"
#include "common/path.h"
#include "plugin/step.h"
#include "release/release.h"

#include <errno.h>
#include <limits.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reports whether a path of the step's environment is in /tmp, as for who went there. */
static bool is_in_tmp(const char *path) { return strncmp(path, "/tmp", 4) == 0 && (path[4] == '/' || path[4] == '\0'); }

/*
 * Slurm tells plugins no working directory. It goes to /tmp where that is missing, and where the user asks for that:
 * then both variables can name another directory, but the jail has that as a rule.
 */
void explain_directory(const struct step *step, spank_t sp)
{
	char path[PATH_MAX];

	if (!getcwd(path, sizeof(path)) || strcmp(path, "/tmp") != 0)
		return;
	if (spank_getenv(sp, "PWD", path, sizeof(path)) == ESPANK_SUCCESS && is_in_tmp(path))
		return;
	if (spank_getenv(sp, "SLURM_SUBMIT_DIR", path, sizeof(path)) != ESPANK_SUCCESS || path[0] != '/' ||
	    is_in_tmp(path))
		return;
	scoped_fd at = open_in_root(step->sandbox.root, path, 0);
	if (at >= 0 || (errno != ENOENT && errno != ENOTDIR))
		return;
	make_printable(path);
	slurm_error("gojail: jail \"%s\" has no %.512s, from which the job was submitted: the step runs in /tmp; ask "
		    "your administrator to mount "
		    "that directory in the jail, or give --chdir=DIR",
		    step->jail, path);
}

#define TELLING_NODES 16 /* of a step: each sends slurmctld a message */

/* The argument of Slurm's calls that names a job: slurm_step_id_t of 26.05. Before, it is the job's number. */
struct job_name {
	uint64_t sluid;
	uint32_t job, component, step;
};

static struct job_name name_job(uint32_t job)
{
	return (struct job_name){.job = job, .component = NO_VAL, .step = NO_VAL};
}

/* Asks slurmctld for a job, and all others of a heterogeneous job or of an array. Returns Slurm's result. */
static int load_job(job_info_msg_t **found, uint32_t job)
{
	void (*call)(void) = (void (*)(void))slurm_load_job;

	if (is_release_from(26, 5))
		return ((int (*)(job_info_msg_t **, struct job_name, uint16_t))call)(found, name_job(job), 0);
	return ((int (*)(job_info_msg_t **, uint32_t, uint16_t))call)(found, job, 0);
}

/* Writes a line to stderr of the job. */
static void notify_job(uint32_t job, char *line)
{
	void (*call)(void) = (void (*)(void))slurm_notify_job;

	if (is_release_from(26, 5))
		((int (*)(struct job_name, char *))call)(name_job(job), line);
	else
		((int (*)(uint32_t, char *))call)(job, line);
}

/* Finds a job among those that load_job returned. */
static const slurm_job_info_t *find_job(const job_info_msg_t *found, uint32_t job)
{
	char *record = (char *)found->job_array;

	for (uint32_t i = 0; i < found->record_count; i++, record += slurm_release->record.size)
		if (MEMBER(uint32_t, record, slurm_release->record.job) == job)
			return (slurm_job_info_t *)record;
	return NULL;
}

/*
 * Writes a line into the job's AdminComment, unless that has a text. Slurm has no other place that the user sees for a
 * batch script whose files cannot be opened: a message to the job goes to the script's stderr.
 */
static void comment_job(uint32_t job, char *line)
{
	job_info_msg_t *found = NULL;
	const slurm_job_info_t *about;
	job_desc_msg_t *change;

	if (!release_fits() || load_job(&found, job) != SLURM_SUCCESS)
		return;
	change = calloc(1, slurm_release->submission.size);
	about = find_job(found, job);
	if (change && about && (!about->admin_comment || !about->admin_comment[0])) {
		slurm_init_job_desc_msg(change);
		MEMBER(uint32_t, change, slurm_release->submission.job) = job;
		change->admin_comment = line;
		slurm_update_job(change);
	}
	free(change);
	slurm_free_job_info_msg(found);
}

void explain_to_user(const struct step *step, const char *text)
{
	uint32_t job = (uint32_t)strtoul(step->job, NULL, 10);
	char line[GOJAIL_TEXT_MAX + 16];

	if (step->node_number >= TELLING_NODES || !job)
		return;
	snprintf(line, sizeof(line), "gojail: %s", text);
	if (step->script[0])
		comment_job(job, line);
	else
		notify_job(job, line);
}

void explain_files(const struct step *step)
{
	char text[GOJAIL_TEXT_MAX];

	snprintf(text, sizeof(text),
		 "Slurm looked for --output, --error and --input of the step in jail \"%s\", not on the node: the "
		 "directory must exist "
		 "in the jail, in a data directory such as /home, or be /tmp, /var/tmp or /dev/shm; see: gojail check",
		 step->jail);
	slurm_error("gojail: %s", text);
	explain_to_user(step, text);
}
