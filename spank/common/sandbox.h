/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.h: what a sandbox is and how it is called, and what the state directory has of it and of its job. Nothing
 * here builds one: job.h does.
 */
#ifndef GOJAIL_SANDBOX_H
#define GOJAIL_SANDBOX_H

#include "common/node.h"
#include "common/record.h"
#include "common/site.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define SANDBOX_NAME_MAX (GOJAIL_NAME_MAX + 1 + 16)

/* The sandbox that a step asks for. */
struct sandbox_spec {
	char job[32];
	struct user user;
	const char *mounts;           /* the --jail-mount list, or NULL */
	const char *net;              /* the label of the rails, or NULL for the node's network */
	const char *root;             /* self or range, or NULL: no user namespace */
	const char *gpus, *nics;      /* what Slurm gave the job, in its own words; may be NULL */
	char script[GOJAIL_PATH_MAX]; /* directory of the batch script, or "" */
	int64_t allocated; /* of which allocation of the job (allocation.h), where no step has begun, and a session
			      asks; 0 otherwise */
};

/* Reports whether the step asks for --jail-root=range, whose mounts are prepared in Go. */
static inline bool spec_is_range(const struct sandbox_spec *spec)
{
	return spec->root && strcmp(spec->root, "range") == 0;
}

struct sandbox {
	int mnt, stage;               /* mount namespaces: the jail and its stage; -1: none */
	int root;                     /* of the jail, O_PATH */
	int net, pid, ipc, uts, user; /* the job's namespaces; -1: the node's */
	int holder;  /* pidfd of the process that holds them; mnt, pid, ipc and uts may be the same descriptor: setns(2)
			enters the namespaces of a process by its pidfd (Linux 5.8) */
	bool is_new; /* it was built for this caller */
};

#define SANDBOX_NONE                                                                                                   \
	{                                                                                                              \
		.mnt = -1, .stage = -1, .root = -1, .net = -1, .pid = -1, .ipc = -1, .uts = -1, .user = -1,            \
		.holder = -1                                                                                           \
	}

/* Closes the descriptors of a sandbox that have a value. */
void sandbox_close(struct sandbox *sandbox);

/* The kinds of namespace that all sandboxes of a job share, where their jails have them. */
enum { SANDBOX_KINDS = 3 };

struct sandbox_kind {
	uint32_t bit; /* GOJAIL_REQUEST_... */
	const char *name;
	int fd; /* GOJAIL_..._FD of a holder */
};

extern const struct sandbox_kind sandbox_kinds[SANDBOX_KINDS];

/*
 * Writes the sandbox's name: the jail's name, and a hash where there is more: mounts, a network of the job's own, a
 * user namespace. A user can find a list of mounts with any hash: sandboxes of two kinds differ in the last digit
 * whatever their mounts are, and the mounts are in a file beside the record, which sandbox_find compares. name has
 * SANDBOX_NAME_MAX + 1 bytes.
 */
void sandbox_name(char *name, const struct jail *jail, const struct sandbox_spec *spec);

/* Reports whether a sandbox of that name has the ids of --jail-root=range. */
bool sandbox_is_range(const char *name);

/* Opens the sandbox if it exists. Returns 0, or -1; with a fault if it exists and is not for this step. */
int sandbox_find(struct sandbox *sandbox, const struct node *node, const struct jail *jail,
		 const struct sandbox_spec *spec, struct fault *fault);

/*
 * Opens what the holder of the sandbox holds. Returns 0 or -1. The holder's own namespaces are entered by its pidfd, a
 * call for all of them and no descriptor of each; but for a step with a Landlock domain, to whose tasks the kernel
 * refuses setns(2) by that, and for slurmd in a container without CAP_SYS_PTRACE.
 */
int sandbox_take_from_holder(struct sandbox *sandbox, const struct jail *jail, const struct sandbox_spec *spec,
			     const struct record *holder);

/*
 * Opens all namespaces of the holder whose record is NAME in the job's directory, but a user namespace: the node's
 * where the job has none of its own. stage and root stay closed. Returns 0, or -1 with a fault.
 */
int sandbox_open_recorded(struct sandbox *sandbox, int job, const char *name, struct record *holder,
			  struct fault *fault);

/*
 * Opens the user namespace of the holder whose record has that name, in which the job's tasks are root (--jail-root);
 * does nothing if there is none. Returns 0, or -1 with a fault.
 */
int sandbox_open_user(struct sandbox *sandbox, const char *name, const struct record *holder, struct fault *fault);

/* Finds the record of the job's network, if that is attached. Returns 0, or -1; with a fault if the job has other
 * rails. */
int job_find_net(const char *state, const struct sandbox_spec *spec, struct record *net, struct fault *fault);

/*
 * Removes the note that an earlier end of the job failed: the job is back, and a session is told that a noted job has
 * ended. What that end left is removed by the next one, which is noted anew if it fails.
 */
void job_forget_ended(const struct node *node, const char *job);

/* Reports whether a name is that of a `gojail run`: one command has its sandbox, which ends with it, and may not have
 * munge's socket at all. */
bool job_is_run(const char *job);

/* Opens the directory of a job in the state directory. Returns -1 with errno. */
int job_open(const struct node *node, const char *job);

/* The same for a directory that is noted as this user's. Returns -1 for another one. */
int job_open_own(const struct node *node, const char *job, uid_t uid);

/* Reports whether the directory of the job is noted as this user's. */
bool job_has_owner(int job, uid_t uid);

#define JOB_OWNER_NOTED 1

/*
 * Checks that the directory of the job is this user's, and notes the user in a new one: a directory of that number may
 * be what another user's job has left. Returns 0, JOB_OWNER_NOTED if nobody was noted, or -1 with a fault.
 */
int job_check_owner(int job, uid_t uid, struct fault *fault);

/* Replaces dir/name; a text that is cut short differs from this one. Returns 0, or -1 with errno. */
int job_write_text(int dir, const char *name, const char *text);

/* Opens the directory of a job for job_next_sandbox. Returns NULL with errno. */
DIR *job_open_list(const struct node *node, const char *job);

/* Returns the next name in the directory of a job that is that of a sandbox's record, or NULL, also for a list that is
 * NULL. The files beside it have the user's words in them. */
const char *job_next_sandbox(DIR *dir);

/* Writes the name of the jail that a sandbox of that name is of, see sandbox_name. */
void sandbox_write_jail(const char *name, char *jail, size_t size);

/* Reports whether a sandbox of that name is of the jail; NULL: any. */
bool sandbox_is_of_jail(const char *name, const char *jail);

/* Returns a hash of a text, which may be NULL. */
uint64_t job_hash(const char *text);

#endif
