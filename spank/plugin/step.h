/* SPDX-License-Identifier: Apache-2.0 */
/* step.h: one step: what it asked for, its sandbox, its stage and its tasks, and what its user is told. */
#ifndef GOJAIL_STEP_H
#define GOJAIL_STEP_H

#include "common/confine.h"
#include "common/fault.h"
#include "common/node.h"
#include "common/sandbox.h"
#include "common/share.h"
#include "plugin/cgroups.h"
#include "plugin/program.h"
#include "plugin/stage_window.h"
#include "plugin/tmp_files.h"

#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>

/* What is written in each task comes first, then what is written in each step, and last the large buffers, of which a
 * part is used: the first write to a page is a fault, and a page that is this process's alone. */
struct step {
	bool begun;             /* the descriptors have their values */
	bool asked;             /* slurm_spank_init_post_opt was called */
	bool opened;            /* slurm_spank_user_init was: Slurm has opened the step's files */
	bool entered;           /* slurm_spank_task_init_privileged was, in this task */
	bool untold;            /* the user is still to be told why the step is refused */
	bool external;          /* a step without tasks, which no jail is for */
	bool own_cgroups;       /* the jail shows the job's cgroups */
	bool cray;              /* shares[0] is the directory of mpi/cray_shasta */
	uint32_t forked, ended; /* tasks */
	uint32_t node_number;   /* of this node, among those of the step */
	int stage_mounts; /* /proc mountinfo of the stage, kept open so that each task can check its stdin, stdout and
			     stderr (stdio.h), or -1 */
	int spool; /* O_PATH: the tmpfs of the jail in which the batch script, or the MPI server's directory, is shown;
		      or -1 */
	dev_t channels;  /* file system of the node's where Slurm mounts the step's IMEX channel (channels.h), or 0 */
	int tmp;         /* O_PATH: /tmp of the jail, where there is a PMIx server; or -1 */
	int reason;      /* GOJAIL_REASON_... of a fault of the node that is met now */
	int64_t took_us; /* of step_prepare */
	struct gojail_launches *launches; /* counters of the jail, or NULL */
	struct sandbox sandbox;
	struct stage_window window;
	struct fault fault; /* the latch: the first fault of this step */
	struct node node;
	char job[32];                   /* its number, once it is known */
	char jail[GOJAIL_NAME_MAX + 1]; /* its jail's name, once it is known */
	char script[GOJAIL_PATH_MAX];   /* directory of the batch script, or "" */
	struct program program;
	struct pmix pmix;
	int ncgroups; /* of the job, in shares + 1, until its memory is noted */
	struct shared
		shares[1 + CGROUPS_MAX]; /* the directory of the step's MPI server, if it has one; the job's cgroups */
	struct x11 x11;
	struct confine confine;
};

/* Returns the step of this process: slurmstepd has one. */
struct step *step_current(void);

/* Reports whether the step's tasks are to be in a jail, and no fault keeps them out. */
bool step_is_jailed(const struct step *step);

/* Counts the step, in its task 0: as one that entered its jail, or failed with the fault in the latch. */
void step_count(const struct step *step);

/* Finds or builds the sandbox that the step asks for and enters the stage; what fails is a fault of the step's. */
void step_prepare(struct step *step, spank_t sp);

/*
 * In user_init, with the user's effective uid: shows in the jail what is known only now, leaves the stage, and puts
 * what is forked from now on into the sandbox. What fails is a fault of the step's.
 */
void tasks_prepare(struct step *step, spank_t sp);

/* In the task, as root: enters the jail and gives up what a task gives up. */
void task_enter(struct step *step);

/* In the task, as the user, with the descriptors of the task: what task_enter could not do. */
void task_finish(struct step *step, spank_t sp);

/* In task_post_fork, for each task; all are forked before the first call. Returns 0, or -1 with a fault that is to end
 * the step. */
int tasks_forked(struct step *step, spank_t sp);

/* In task_exit, for each task. */
void tasks_ended(struct step *step);

/* In exit: closes what is still open. */
void tasks_end(struct step *step);

/*
 * Tells the user that the jail lacks the directory in which the step was started, if Slurm went to /tmp: in
 * user_init, before the stage is left.
 */
void explain_directory(const struct step *step, spank_t sp);

/*
 * Tells the user a line that the step's own files do not show, by a message to the job (slurm_notify_job): the srun or
 * salloc that has the allocation prints it, or it comes to the stderr of the batch script. For the batch step itself
 * the line becomes the job's AdminComment. As root, outside the stage; slurmctld may take seconds to answer. Not in
 * user_init: from 23.02 on slurmstepd holds a lock there that each message needs, and ends at an attempt
 * (auth_setuid_lock in Slurm's auth.c).
 */
void explain_to_user(const struct step *step, const char *text);

/*
 * Writes into slurmd's log, and tells the user, where Slurm looked for a file that it could not open: the user's files
 * are not open then.
 */
void explain_files(const struct step *step);

#endif
