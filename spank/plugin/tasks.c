/* SPDX-License-Identifier: Apache-2.0 */
/* tasks.c: the tasks of a step that step_prepare has made ready, from the stage to the end of the last of them. */
#include "common/fd.h"
#include "common/inside.h"
#include "common/path.h"
#include "common/syscalls.h"
#include "plugin/channels.h"
#include "plugin/forks.h"
#include "plugin/stdio.h"
#include "plugin/step.h"
#include "release/release.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Opens the directories of the jail that have those of the step's MPI server, while its storage answers. */
static void open_parents(struct step *step)
{
	const char *name;

	step->spool = open_own_parent(step->sandbox.root, step->shares[0].path, &name);
	if (!step->cray) /* mpi/cray_shasta has nothing there, and would not remove it */
		step->tmp = pmix_open_tmp(step->sandbox.root);
}

/*
 * Replaces the directory of mpi/pmix, SPOOL/pmix.JOB.STEP, with that of mpi/cray_shasta (_create_app_dir in its
 * mpi_cray_shasta.c) if the step has that: Slurm loads one plugin for MPI. The jail cannot write there: slurmstepd,
 * which is root on the node, removes what the user has in it, and follows links in releases up to 22.05.9 and 23.02.5
 * (CVE-2023-41914).
 */
static void find_mpi_directory(struct step *step, struct shared *one)
{
	char path[sizeof(one->path)];
	const char *name = strrchr(one->path, '/') + 1;

	if (snprintf(path, sizeof(path), "%.*smpi_cray_shasta/%s", (int)(name - one->path), one->path,
		     name + strlen("pmix.")) < (int)sizeof(path) &&
	    access(path, F_OK) == 0) {
		memcpy(one->path, path, sizeof(path));
		one->attributes |= MOUNT_ATTR_RDONLY;
		step->cray = true;
	}
}

/*
 * Shows the directory of the step's MPI server, the job's cgroups and its IMEX channel in the jail. Slurm's mpi/pmix
 * has created its directory by now (lib_tmpdir in its pmixp_info.c), and its clients look for it at that path.
 * Returns what channels_find returns.
 */
static dev_t share_with_jail(struct step *step, bool elsewhere)
{
	dev_t channels;
	struct shared *list = step->shares[0].path[0] ? step->shares : step->shares + 1;
	int count = step->shares + 1 - list;

	step->shares[0].attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	if (count)
		find_mpi_directory(step, list);
	step->ncgroups = find_job_cgroups(step->shares + 1, CGROUPS_MAX);
	if (step->own_cgroups)
		count += step->ncgroups;
	if (count)
		share_show(step->sandbox.mnt, step->sandbox.root, list, count, &step->fault);
	channels = channels_show(step->channels, step->sandbox.mnt, step->sandbox.root, &step->fault);
	if (step->shares[0].done && !elsewhere)
		open_parents(step);
	return channels;
}

/*
 * Opens the mounts of the namespace that this process is in, for the tasks. In the last hook in the stage: another
 * plugin may have copied it since init_post_opt, which gives all mounts other ids. Returns a descriptor, or -1 with a
 * fault.
 */
static int open_mounts(struct fault *fault)
{
	int mounts = open_own_proc("mountinfo");

	return mounts < 0 ? fault_set(fault, "cannot read the stage's mounts: %s", strerror(errno)) : mounts;
}

/*
 * Checks the files that Slurm has opened for the user in the stage and keeps open; a batch step has none. A process
 * that is not slurmstepd has a copy of its descriptors.
 */
static void check_stage_files(struct step *step, uid_t user, bool elsewhere)
{
	const struct sandbox *sandbox = &step->sandbox;
	const int ours[] = {sandbox->holder, sandbox->stage, sandbox->root, sandbox->net, sandbox->user,
			    sandbox->mnt,    sandbox->pid,   sandbox->ipc,  sandbox->uts, step->window.home};
	int mounts = open_mounts(&step->fault);

	if (mounts >= 0 && !step->script[0])
		stdio_check_own(mounts, sandbox->root, user, ours, sizeof(ours) / sizeof(ours[0]), &step->fault);
	if (!elsewhere)
		step->stage_mounts = mounts;
	else
		close_fd(&mounts);
}

/*
 * Ends the time in the stage, in user_init, which Slurm calls as the user: most of it needs root. Returns the effective
 * uid that the thread has then, user unless there was a fault.
 */
static uid_t leave_stage(struct step *step, uid_t user)
{
	const bool elsewhere = stage_window_is_elsewhere(&step->window);
	bool refused = false;
	dev_t staged = 0;

	if (step_is_jailed(step)) {
		check_stage_files(step, user, elsewhere);
		refused = step->fault.text[0];
	}
	if (k_seteuid_from(user, 0) < 0) {
		fault_set(&step->fault, "cannot become root again: %s", strerror(errno));
		(void)k_seteuid_from(user, 0); /* for the way home: what failed may pass */
	}
	if (step_is_jailed(step))
		staged = share_with_jail(step, elsewhere);
	if ((elsewhere || stage_window_leave(&step->window, &step->fault) == 0) && refused)
		step->untold = true; /* its tasks say so in the files for which it is refused */
	/* EntireStepInNS and namespace/linux have mounted them before the plugin was called, and none in the stage. */
	if (step_is_jailed(step) && staged == step->channels)
		channels_show(step->channels, step->sandbox.mnt, step->sandbox.root, &step->fault);
	if (step_is_jailed(step))
		note_job_cgroups(&step->node, step->job, step->shares + 1, step->ncgroups);
	if (k_become_user(user) == 0)
		return user;
	fault_set(&step->fault, "cannot become user %u again: %s", (unsigned)user, strerror(errno));
	return 0;
}

/*
 * Puts what is forked from now on into the job's PID namespace. After the tasks Slurm forks task epilogs, for which it
 * calls no hook, in the node's namespaces and with all rights of root. The epilog of a step with a fault, whose tasks
 * do not run, would be a program of the user's on the node. Tasks of root look like epilogs. Returns 0, or -1 with a
 * fault.
 */
static int begin_forks(struct step *step, bool tasks_of_root)
{
	if (step->external)
		return 0;
	if (!step->asked)
		fault_set(&step->fault, NODE_UNASKED);
	if (step->sandbox.mnt < 0 && !step->fault.text[0])
		return 0; /* no jail */
	return forks_begin(!tasks_of_root, &step->sandbox, &step->confine, &step->fault);
}

void tasks_prepare(struct step *step, spank_t sp)
{
	uid_t user = geteuid();

	step->opened = true;
	if (step_is_jailed(step))
		explain_directory(step, sp);
	if (step->sandbox.mnt >= 0 || step->window.open)
		user = leave_stage(step, user);
	if (step_is_jailed(step))
		x11_read(&step->x11, sp);
	/* The last thing before the tasks are forked. An earlier plugin may see to it that task_post_fork is not
	 * called. */
	begin_forks(step, user == 0); /* the tasks are root's, or leave_stage could not become the user again */
}

void task_enter(struct step *step)
{
	struct fault *fault = &step->fault;

	if (!step->asked || (step_is_jailed(step) && !forks_are_in_force()))
		fault_set(fault, NODE_UNASKED);
	if (step_is_jailed(step) && step->stage_mounts < 0)
		step->stage_mounts =
			open_mounts(fault); /* slurmstepd has not left the stage: see stage_window_is_elsewhere */
	/* A task that is to be root there gives up the powers of a root there, too: in task_finish. */
	if (step_is_jailed(step) && enter_sandbox(&step->sandbox, fault) == 0)
		(step->sandbox.user < 0 ? confine_apply : confine_begin)(&step->confine, fault);
	step->entered = true;
}

void task_finish(struct step *step, spank_t sp)
{
	if (!step->entered)
		fault_set(&step->fault, NODE_UNASKED);
	if (step_is_jailed(step))
		stdio_check(step->stage_mounts, step->sandbox.root, &step->fault);
	if (!step->fault.text[0])
		enter_as_root_with_files(&step->sandbox, &step->confine, &step->fault);
	/* As the one who executes it: with --jail-root=range the user may not search the user's own directories in the
	 * jail. */
	if (step_is_jailed(step))
		program_correct(&step->program, sp, step->node.name, &step->fault);
	if (step_is_jailed(step))
		x11_write(&step->x11);
}

int tasks_forked(struct step *step, spank_t sp)
{
	struct fault late = {0};
	uint32_t tasks = 0;

	if (step->forked++ == 0 && begin_forks(step, false) < 0)
		return -1;
	if (step->untold)
		explain_to_user(step, step->fault.text);
	step->untold = false;
	if (!step_is_jailed(step) || stage_window_is_elsewhere(&step->window) ||
	    spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS || step->forked < tasks)
		return 0;
	/* The stage and not the jail: Slurm reads /proc and /sys about its tasks meanwhile, which must be the node's
	 * and not what a user has put there. Up to 23.02 it looks for the program of a task epilog before it forks
	 * (_run_script_as_user in mgr.c). */
	if (!is_release_from(23, 11) && stage_window_open(&step->window, step->sandbox.stage, &late) < 0)
		/* A failure here would drain the node. Slurm looks for them on the node then, and they run in the jail
		 * or nowhere. */
		slurm_error("gojail: %s", late.text);
	return 0;
}

/* Notes the memory of the job, once in a step. */
static void note_memory(struct step *step)
{
	note_job_memory(&step->node, step->job, step->shares + 1, step->ncgroups);
	step->ncgroups = 0;
}

void tasks_ended(struct step *step)
{
	struct fault late = {0};

	if (++step->ended != step->forked)
		return;
	forks_end();
	if (stage_window_is_elsewhere(&step->window))
		return;
	if (stage_window_leave(&step->window, &late) < 0)
		slurm_error("gojail: %s", late.text);
	else
		note_memory(step);
}

void tasks_end(struct step *step)
{
	struct sandbox *sandbox = &step->sandbox;
	struct fault late = {0};

	forks_end(); /* the plugin stays loaded */
	if (stage_window_leave(&step->window, &late) < 0)
		slurm_error("gojail: %s", late.text);
	else if (!step->opened && step_is_jailed(step))
		explain_files(step);
	/*
	 * The storage of the jail may be silent by now: nothing is looked up from its root. Where user_init was called
	 * in another process, this one has no descriptor of what it has shown.
	 */
	if (step->shares[0].done && step->spool < 0)
		open_parents(step);
	if (step->tmp >= 0)
		pmix_remove(&step->pmix, step->tmp);
	if (step->shares[0].done && share_hide(sandbox->mnt, step->spool, step->shares[0].path, &late) < 0)
		slurm_error("gojail: %s", late.text);
	if (step->script[0] && step->spool >= 0)
		share_remove_script(step->spool, step->script);
	close_fd(&step->spool);
	close_fd(&step->tmp);
	note_memory(step);   /* where the tasks' ends were told to another process */
	sandbox->stage = -1; /* closed with window.home when slurmstepd ends, which is next */
	sandbox_close(sandbox);
}
