/* SPDX-License-Identifier: Apache-2.0 */
/* site.h: the site file: a jail's properties, and whether this user may use it. */
#ifndef GOJAIL_SITE_H
#define GOJAIL_SITE_H

#include "common/fault.h"
#include "common/node.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What gojail-session does: the table [session]. */
struct session_rules {
	bool node_without_job; /* a user without a job here gets the node, else nothing */
	char shell[GOJAIL_PATH_MAX];
	char exempt[GOJAIL_PATH_MAX]; /* gids, separated by commas; "-": none */
};

/* Sessions on a login node: the table [login]. */
struct login_rules {
	int linger_ms;    /* how long a sandbox stays after the last session; 0: this is no login node */
	const char *text; /* the lines "rule", in the site's text */
};

/* The site file, checked to belong to the gojail.toml that is there now. */
struct site {
	char *text;
	char default_jail[GOJAIL_NAME_MAX + 1]; /* "none" where there is no default */
	bool none_allowed;
	int deadline_ms;
	char scratch[GOJAIL_PATH_MAX];
	struct session_rules session;
	struct login_rules login;
	const char *jails; /* the rest of the text */
};

/* A mount that is collected for the holder, as a tree. */
struct bind_mount {
	uint64_t attributes;        /* MOUNT_ATTR_* */
	char path[GOJAIL_PATH_MAX]; /* in the jail; "": none */
};

struct jail {
	char name[GOJAIL_NAME_MAX + 1];
	char key[GOJAIL_KEY_LEN + 1];
	char source[GOJAIL_PATH_MAX]; /* the path of its root on the node */
	uint64_t quota;               /* bytes of a job's /tmp on disk; 0: no limit */
	char spool[GOJAIL_PATH_MAX];
	struct gojail_mount mounts[GOJAIL_JOB_MOUNTS_MAX]; /* for the holder */
	uint32_t nmounts;
	struct bind_mount tmp, script,
		munge;                 /* the job's /tmp on disk, the directory of its batch script, munge's socket */
	struct bind_mount upper;       /* the job's changes to the root, on disk */
	char net[GOJAIL_NAME_MAX + 1]; /* the label of its rails, or "none" */
	uint32_t namespaces;           /* GOJAIL_REQUEST_PID, _IPC, _UTS */
	bool cgroup;                   /* steps are shown their own cgroups only */
	bool no_new_privs;
	bool scope;        /* each step has abstract sockets of its own */
	const char *env;   /* its lines env and prepend, in the site's text; NULL: none */
	uint64_t bounding; /* capabilities, bit by number */
	char roots[16];    /* modes of --jail-root that it allows, separated by a blank; "-": none */
	char seccomp[64];  /* its filter, below the state directory, or "" */
	int ngpus;
	struct {
		unsigned index;
		char path[GOJAIL_GPU_PATH_MAX];
	} gpus[GOJAIL_GPU_NODES_MAX]; /* device nodes, by the index of Slurm's GPU that they belong to; the last member,
					 as those after ngpus are never written */
};

struct user {
	uid_t uid;
	gid_t gid;
	const gid_t *groups;
	int ngroups;
};

/* Reads the site file, which is compiled first where it is absent or out of date. Returns 0, or -1 with a fault. */
int site_open(struct site *site, const struct node *node, struct fault *fault);
void site_close(struct site *site);

/* Reads the field of a job's record in slurmdbd that gets a summary when the job ends, from the site file as it is; ""
 * if there is none. */
void site_read_summary(const struct node *node, char *field, size_t size);

/*
 * Finds the jail of a user's sessions on a login node, and writes its name; account is the user's name. Returns 1, 0 if
 * there is none, or -1 with a fault, where a rule that may name the user could not be resolved.
 */
int site_find_login(const struct site *site, const struct user *user, const char *account, char *jail, size_t size,
		    struct fault *fault);

/* Replaces the MODE of --jail-root by what it means in this jail; "any" becomes the first mode that it allows. Returns
 * 0, or -1 with a fault. */
int site_resolve_root(const struct jail *jail, char *mode, size_t size, struct fault *fault);

/* Reads the jail, if this user may use it. Returns 0, or -1 with a fault. */
int site_find_jail(const struct site *site, const char *name, const struct user *user, struct jail *jail,
		   struct fault *fault);

#endif
