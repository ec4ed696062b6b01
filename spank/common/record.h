/* SPDX-License-Identifier: Apache-2.0 */
/* record.h: who holds a namespace, as a one-line file (docs/state.md). */
#ifndef GOJAIL_RECORD_H
#define GOJAIL_RECORD_H

#include "common/fault.h"

#include <stdint.h>
#include <sys/types.h>

struct record {
	pid_t pid;
	uint64_t start;
	char key[GOJAIL_KEY_LEN + 1];
	uint32_t uid; /* whose job it is */
};

/* Start time of a process in clock ticks since boot; 0 if there is none. */
uint64_t read_start_time(pid_t pid);

/*
 * Reads dir/name. 0 only if it is whole and its process lives; everything else,
 * damage included, counts as no record.
 */
int record_find(int dir, const char *name, struct record *record);

/* The same, and a pidfd of the process; -1 if there is none. */
int record_open(int dir, const char *name, struct record *record);

/* What the process of a record and its pidfd has at one of the descriptors GOJAIL_..._FD, or -1. */
int record_get_fd(const struct record *record, int pidfd, int number);

/* Writes dir/name so that a reader sees all of it or nothing. */
int record_write(int dir, const char *name, const struct record *record, struct fault *fault);

/* A pidfd of the process of a record; -1 if it is gone. */
int record_open_pidfd(const struct record *record);

/* The process of a record as its directory of /proc, which never becomes another's; -1 with ENOENT or ESRCH if it is gone. */
int record_open_proc(const struct record *record);

/* Opens a namespace ("mnt", "net") of a process; -1 if it is gone. */
int open_namespace(int process, const char *kind);

/*
 * The node's /proc, for a process that will be in a jail, where who owns the jail's
 * root decides what is called /proc. -1 with a fault.
 */
int open_node_proc(struct fault *fault);

/* The calling process as that /proc numbers it. */
struct record read_self(int proc);

/* Kills the process of a record, if it is still that one; 0 if it is gone within patience_ms, or holds nothing then. */
int record_kill(const struct record *record, int patience_ms);

#endif
