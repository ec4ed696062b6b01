/* SPDX-License-Identifier: Apache-2.0 */
/* tasks.h: the tasks of a step that step_prepare has made ready, from the stage to the end of the last of them. */
#ifndef GOJAIL_TASKS_H
#define GOJAIL_TASKS_H

#include "plugin/step.h"

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

#endif
