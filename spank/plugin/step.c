/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/step.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/job.h"
#include "common/path.h"
#include "common/share.h"
#include "common/site.h"
#include "common/storage.h"
#include "common/zygote_client.h"
#include "plugin/channels.h"
#include "plugin/environment.h"
#include "plugin/events.h"
#include "plugin/forks.h"
#include "plugin/oci.h"
#include "plugin/options.h"

#include <errno.h>
#include <sched.h>
#include <slurm/slurm.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct step *step_current(void)
{
	static struct step step; /* in pages that are zero until they are used, most of them never */

	if (!step.begun) {
		step.stage_mounts = step.spool = step.tmp = -1;
		step.sandbox = (struct sandbox)SANDBOX_NONE;
		step.window = (struct stage_window)STAGE_WINDOW_CLOSED;
		step.begun = true;
	}
	return &step;
}

bool step_is_jailed(const struct step *step) { return step->sandbox.mnt >= 0 && !step->fault.text[0]; }

/* Reads the directory of the batch script, which is shown in the jail, where Slurm executes it. Returns 0, or -1 with a
 * fault. */
static int find_script(spank_t sp, struct sandbox_spec *spec, struct fault *fault)
{
	char **argv = NULL, *slash;
	int argc = 0;

	if (spank_get_item(sp, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS || argc < 1 ||
	    snprintf(spec->script, sizeof(spec->script), "%s", argv[0]) >= (int)sizeof(spec->script) ||
	    spec->script[0] != '/')
		return fault_set(fault, "cannot get the path of the batch script from Slurm");
	slash = strrchr(spec->script, '/');
	*slash = '\0';
	return 0;
}

static int read_spec(spank_t sp, uint32_t id, struct sandbox_spec *spec, struct fault *fault)
{
	gid_t *groups = NULL;
	uint32_t job;

	if (spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_UID, &spec->user.uid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_GID, &spec->user.gid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &groups, &spec->user.ngroups) != ESPANK_SUCCESS)
		return fault_set(fault, "cannot get the job and its user from Slurm");
	spec->user.groups = groups;
	snprintf(spec->job, sizeof(spec->job), "%u", job);
	return id == SLURM_BATCH_SCRIPT ? find_script(sp, spec, fault) : 0;
}

/*
 * Reads a list from the step's environment into list; result is "" if Slurm sets none, and no page of list is written
 * to. A list that cannot be read whole is a fault, never read in part.
 */
static int read_list(spank_t sp, const char *name, char *list, size_t size, const char **result, struct fault *fault)
{
	spank_err_t got = spank_getenv(sp, name, list, (int)size);

	*result = got == ESPANK_SUCCESS ? list : "";
	if (got == ESPANK_SUCCESS || got == ESPANK_ENV_NOEXIST)
		return 0;
	return fault_set(fault, "cannot read %s of the step: %s; ask your administrator", name,
			 got == ESPANK_NOSPACE ? "it is too long" : "Slurm refuses it");
}

/*
 * Reads which GPUs and NICs Slurm gave the job. Its plugins set or remove one of the two variables in each step; the
 * other is the user's (gres_common.c). Whether there are such plugins at all, Go knows. Returns 0, or -1 with a fault.
 */
static int find_gres(spank_t sp, uint32_t id, struct sandbox_spec *spec, struct fault *fault)
{
	static char gpus[GOJAIL_GRES_MAX], nics[GOJAIL_GRES_MAX];
	bool whole = id == SLURM_BATCH_SCRIPT || id == SLURM_INTERACTIVE_STEP;

	if (read_list(sp, whole ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS", gpus, sizeof(gpus), &spec->gpus, fault) < 0)
		return -1;
	return read_list(sp, whole ? "SLURM_JOB_NICS" : "SLURM_STEP_NICS", nics, sizeof(nics), &spec->nics, fault);
}

/* Reads what the user asked for, or the site's default. Returns 0, or -1 with a fault. */
static int complete_options(spank_t sp, const struct site *site, struct step_options *options, struct fault *fault)
{
	if (options_read(sp, options) < 0)
		return fault_set_request(fault, "the value of a --jail option is too long");
	return step_options_complete(options, site, fault);
}

#define FAULT_PATIENCE_MS 2000

/*
 * Enters the stage without the jail, so that the message about a fault reaches the user's own file. The stage of the
 * zygote, of which those of all jobs are made, is copied first: later plugins may mount where they are. Not where the
 * storage may be silent: Slurm would hang in opening that file, and cannot be killed then.
 */
static void enter_stage_for_fault(struct step *step, const struct jail *jail, const struct sandbox_spec *spec)
{
	int64_t until = clock_ms() + FAULT_PATIENCE_MS;
	char name[SANDBOX_NAME_MAX + 1];
	struct fault ignored = {0};
	struct record zygote;
	bool shared;

	if (step->fault.silent || step->window.open)
		return; /* the storage may be silent, or the thread is in the stage already */
	sandbox_name(name, jail, spec);
	if ((step->sandbox.stage < 0 ? storage_await(&step->node, jail, until, &ignored) :
				       storage_await_job(&step->node, jail, spec->job, name, until, &ignored)) < 0)
		return;
	shared = step->sandbox.stage < 0;
	if (shared && zygote_find(&step->node, jail->name, &zygote) == 0) {
		scoped_fd process = record_open_pidfd(&zygote);
		step->sandbox.stage = record_get_fd(&zygote, process, GOJAIL_STAGE_FD);
	}
	if (step->sandbox.stage >= 0 && stage_window_open(&step->window, step->sandbox.stage, &ignored) == 0 &&
	    shared && unshare(CLONE_NEWNS) < 0)
		stage_window_leave(&step->window, &ignored);
}

/* Opens the sandbox, prepares all that is the step's own in it, and enters the stage. Returns 0, or -1 with a fault. */
static int open_sandbox(struct step *step, spank_t sp, uint32_t id, const struct site *site, const struct jail *jail,
			const struct sandbox_spec *spec)
{
	struct sandbox *sandbox = &step->sandbox;
	struct fault *fault = &step->fault;
	const char *name;

	if (id <= SLURM_MAX_NORMAL_STEP_ID) {
		snprintf(step->shares[0].path, sizeof(step->shares[0].path), "%s/pmix.%s.%u", jail->spool, spec->job,
			 (unsigned)id);
		pmix_name(&step->pmix, spec->user.uid, spec->job, id);
	}
	step->own_cgroups = jail->cgroup;
	if (oci_is_step(jail->spool, spec->job, id))
		return fault_set_request(
			fault, "--container and --jail cannot be combined: the bundle of the container is the node's; "
			       "give --jail=none with --container");
	if (confine_read(&step->confine, &step->node, jail, fault) < 0)
		return -1;
	step->reason = GOJAIL_REASON_SANDBOX;
	if (sandbox_open(sandbox, &step->node, site, jail, spec, fault) < 0)
		return -1;
	if (spec->script[0])
		step->spool = open_own_parent(sandbox->root, spec->script,
					      &name); /* for the end of the step, when the storage may be silent */
	if (sandbox->is_new)
		event_entered(&step->node, sp, id, jail->name);
	step->reason = GOJAIL_REASON_STEP;
	if (forks_prepare(sandbox, step->window.process, jail->scope, fault) < 0)
		return -1;
	if (show_gpus(jail, spec->gpus, sandbox->mnt, sandbox->root, fault) < 0)
		return -1;
	note_gpus(&step->node, spec->job, jail, spec->gpus);
	environment_drop_session(sp, spec->user.uid, sandbox->root);
	environment_add_jail(sp, jail, fault);
	if (spec->net)
		environment_add_net(sp, &step->node, spec->job, fault);
	if (fault->text[0] || stage_window_open(&step->window, sandbox->stage, fault) < 0)
		return -1;
	step->channels = channels_find();
	return 0;
}

/* Completes what the step asks for from its options, its jail and Slurm. Returns 0, or -1 with a fault. */
static int complete_spec(struct step *step, spank_t sp, uint32_t id, const struct site *site,
			 struct step_options *options, struct jail *jail, struct sandbox_spec *spec)
{
	struct fault *fault = &step->fault;

	if (read_spec(sp, id, spec, fault) < 0 || step_options_apply(options, site, jail, spec, fault) < 0)
		return -1;
	return find_gres(sp, id, spec, fault);
}

/* Returns the GOJAIL_REASON_... of the fault in the latch. */
static int find_reason(const struct step *step)
{
	if (step->fault.request)
		return GOJAIL_REASON_REQUEST;
	return step->fault.silent ? GOJAIL_REASON_STORAGE : step->reason;
}

/* Writes a line about the fault in the latch into the journal. */
static void note_failure(const struct step *step, spank_t sp, uint32_t id, const char *jail)
{
	event_failed(find_reason(step), &step->fault, sp, id, jail);
}

/* Prepares the step's way into its jail: configuration, spec, sandbox, stage. Returns 0 or -1. */
static int prepare_jail(struct step *step, spank_t sp, uint32_t id)
{
	static struct step_options options;
	static struct jail
		jail; /* on the stack it would take all that is called here to pages that Slurm does not use */
	struct sandbox_spec spec = {0};
	struct site site = {0};
	bool known = false;
	int result = -1;

	if (step->fault.text[0] || node_check_state(&step->node, &step->fault) < 0) {
		note_failure(step, sp, id, "");
		return -1;
	}
	if (site_open(&site, &step->node, &step->fault) < 0)
		goto out;
	program_read(&step->program, sp, step->node.name);
	if (id == SLURM_BATCH_SCRIPT)
		environment_add_login(sp, &site);
	if (complete_options(sp, &site, &options, &step->fault) < 0)
		goto out;
	if (step_options_are_none(&options)) {
		result = 0;
		goto out;
	}
	if (complete_spec(step, sp, id, &site, &options, &jail, &spec) < 0)
		goto out;
	known = true;
	step->launches = launches_map(&step->node, jail.name); /* the state directory is not in the stage */
	memcpy(step->script, spec.script, sizeof(step->script));
	memcpy(step->job, spec.job, sizeof(step->job));
	memcpy(step->jail, jail.name, sizeof(step->jail));
	result = open_sandbox(step, sp, id, &site, &jail, &spec);
	if (result < 0) {
		note_failure(step, sp, id, jail.name);
		enter_stage_for_fault(step, &jail, &spec);
	}
out:
	site_close(&site);
	if (!known && step->fault.text[0]) {
		step->launches = launches_map(&step->node, "");
		note_failure(step, sp, id, "");
	}
	return result;
}

void step_count(const struct step *step)
{
	if (step->fault.text[0])
		launches_count_failed(step->launches, find_reason(step));
	else if (step->sandbox.mnt >= 0)
		launches_count_entered(step->launches, step->took_us);
}

void step_prepare(struct step *step, spank_t sp)
{
	int64_t begin = clock_us();
	uint32_t id = 0;

	step->window.process = getpid();
	if (spank_get_item(sp, S_JOB_STEPID, &id) != ESPANK_SUCCESS)
		fault_set(&step->fault, "cannot get the id of the step from Slurm");
	else if (!(step->external = id == SLURM_EXTERN_CONT) && prepare_jail(step, sp, id) < 0 && !step->fault.text[0])
		fault_set(&step->fault, "the jail could not be prepared");
	if (spank_get_item(sp, S_JOB_NODEID, &step->node_number) != ESPANK_SUCCESS)
		step->node_number = 0;
	step->took_us = clock_us() - begin;
	if (!step->fault.text[0])
		step->reason = GOJAIL_REASON_TASK;
}
