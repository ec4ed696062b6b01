/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h: what the launcher can be asked for (include/gojail.h): the choice of a verb, and those with a file of their
 * own. */
#ifndef GOJAIL_VERBS_H
#define GOJAIL_VERBS_H

#include "common/fault.h"
#include "common/node.h"
#include "common/sandbox.h"
#include "common/site.h"

#include <stdbool.h>
#include <stdint.h>

/* Does it; a verb that goes on detached returns in another process. Returns 0, or -1 with a fault. */
int verb_run(const char *verb, const struct node *node, int64_t until, struct fault *fault);

/* Returns what the caller is told besides that the verb succeeded, or "". */
const char *verb_note(const char *verb);

/* Reports whether nobody reads the reply to the verb. */
bool verb_is_detached(const char *verb);

/* Reports whether the verb is to run a command of the caller's in a sandbox, as the caller is: its umask, its cgroup.
 */
bool verb_is_enter(const char *verb);

/*
 * Moves the calling process into the sandbox that the words job and sandbox name, gives up for good what tasks of the
 * jail give up, and executes the command, or a shell if it is empty, as that user in a child of the caller's parent,
 * which is told its pid. Returns 0 as soon as the command is executed, or -1 with a fault.
 */
int command_run(char **command, const struct node *node, const struct user *user, int64_t until, struct fault *fault);

/*
 * Adds the use of the job's GPUs to its line in the journal, sends that, and writes it to the job's record in slurmdbd
 * where the site wants it. Returns 0, or -1 with a fault.
 */
int ended_report(const struct node *node, int64_t until, struct fault *fault);

/*
 * Assembles the template of the jail that the words name, and stays as its zygote. Returns 0 if another launcher was
 * faster, or -1 with a fault.
 */
int template_serve(const struct node *node, int64_t until, struct fault *fault);

/*
 * Probes each remote mount of the sandbox that the words job and sandbox name, of its stage and of its jail, by one
 * request; if all have answered, well or badly, the file SANDBOX.storage gets the time. Moves this process into the
 * sandbox's mount namespace. Returns 0, or -1 with a fault.
 */
int sandbox_storage_probe(const struct node *node, int64_t until, struct fault *fault);

/* Shows munge's new socket in a sandbox of a job. If it fails, Slurm's commands fail there; the log says why. */
void munge_refresh(const struct sandbox *sandbox, const struct node *node, const struct jail *jail, const char *job,
		   int64_t until);

/* Starts a process that does so in all sandboxes of the node: their storage may be silent, and nobody waits for it. */
void munge_start_refresh(const struct node *node);

/*
 * Checks that this node is a login node, and the name of the sandbox, and removes what a sandbox from before the last
 * boot left in the scratch directory. Returns 0, or -1 with a fault.
 */
int login_prepare(const struct node *node, struct site *site, const char *name, uid_t uid, int64_t until,
		  struct fault *fault);

/*
 * Starts the process that ends the sandbox a while after its last session, unless there is one. A process that a
 * session left behind keeps the sandbox. Returns 0, or -1 with a fault.
 */
int login_watch(const struct node *node, const struct site *site, const char *name, struct fault *fault);

#endif
