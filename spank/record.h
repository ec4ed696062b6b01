/* SPDX-License-Identifier: Apache-2.0 */
/* record.h: who holds a namespace, as a one-line file (include/gojail.h). */
#ifndef GOJAIL_RECORD_H
#define GOJAIL_RECORD_H

#include "fault.h"

#include <stdint.h>
#include <sys/types.h>

struct record {
	pid_t pid;
	uint64_t start;
	char key[GOJAIL_KEY_LEN + 1];
};

/* Start time of a process in clock ticks since boot; 0 if there is none. */
uint64_t process_start(pid_t pid);

/*
 * Reads dir/name. 0 only if it is whole and its process lives; everything else,
 * damage included, counts as no record.
 */
int record_find(int dir, const char *name, struct record *record);

/* Writes dir/name so that a reader sees all of it or nothing. */
int record_write(int dir, const char *name, const struct record *record, struct fault *fault);

/* Opens a namespace ("mnt", "net") of the process of a record; -1 if it is gone. */
int record_namespace(const struct record *record, const char *kind);

/*
 * The node's /proc, for a process that will be in a jail, where who owns the jail's
 * root decides what is called /proc. -1 with a fault.
 */
int proc_open(struct fault *fault);

/* The calling process as that /proc numbers it. */
struct record proc_self(int proc);

/* The process itself (pidfd_open(2)), or -1. */
int record_pidfd(const struct record *record);

/* The mount namespace of the stage that a zygote or a holder keeps, or -1. */
int record_stage(const struct record *record);

/* The user namespace that a holder keeps for its tasks, or -1. */
int record_user(const struct record *record);

/* Kills the process of a record, if it is still that one; 0 if it is gone within patience_ms, or holds nothing then. */
int record_end(const struct record *record, int patience_ms);

#endif
