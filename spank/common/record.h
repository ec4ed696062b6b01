/* SPDX-License-Identifier: Apache-2.0 */
/* record.h: which process a zygote or a holder is, as a one-line file (docs/state.md). */
#ifndef GOJAIL_RECORD_H
#define GOJAIL_RECORD_H

#include "common/fault.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct record {
	pid_t pid;
	uint64_t start;
	char key[GOJAIL_KEY_LEN + 1];
	uint32_t uid; /* the owner of the job */
	bool foreign; /* of another contract (GOJAIL_VERSION): only pid and start are known */
};

/* Returns the start time of a process in clock ticks since boot, or 0 if there is no such process. */
uint64_t read_start_time(pid_t pid);

/*
 * Reads dir/name. Returns 0 if the record is whole and its process lives, else -1: a damaged record counts as absent.
 * The pid is set even for a record of another version.
 */
int record_find(int dir, const char *name, struct record *record);

/* The same, but the process may have ended. */
int record_read(int dir, const char *name, struct record *record);

/* As record_find, but returns a pidfd of the process, or -1. */
int record_open(int dir, const char *name, struct record *record);

/* Returns a copy of one of the descriptors GOJAIL_..._FD of the process with that record and pidfd, or -1. */
int record_get_fd(const struct record *record, int pidfd, int number);

/* Writes dir/name so that a reader sees all of it or nothing. Returns 0, or -1 with a fault. */
int record_write(int dir, const char *name, const struct record *record, struct fault *fault);

/* Returns a pidfd of the process of a record, or -1 if the process has ended. */
int record_open_pidfd(const struct record *record);

/* Returns the /proc directory of the process of a record, which never becomes another process's; -1 with ENOENT or
 * ESRCH if it has ended. */
int record_open_proc(const struct record *record);

/*
 * Searches the node for a process of which is_wanted reports true, given its /proc directory and wanted. Returns that
 * directory, or -1.
 */
int find_process(bool (*is_wanted)(int process, void *wanted), void *wanted);

/* Reports whether the process of a pidfd has ended. */
bool pidfd_has_ended(int pidfd);

/* Reports whether a version of gojail with another contract wrote the record, and its process lives. */
bool record_is_foreign(const struct record *record);

/*
 * Reports whether all four uids of a process, given its /proc directory, are root's, which no user's process has, not
 * even in a user namespace (proc_pid_status(5)).
 */
bool record_is_of_root(int process);

/* Opens a namespace ("mnt", "net") of a process, given its /proc directory. Returns -1 if the process has ended. */
int open_namespace(int process, const char *kind);

/*
 * Opens the node's /proc, for a process that will be in a jail, where the owner of the jail's root decides what is
 * called /proc. Returns -1 with a fault.
 */
int open_node_proc(struct fault *fault);

/* Returns pid and start time of the calling process as that /proc has them. */
struct record read_self(int proc);

/* Kills the process of a record, if it is still that one. Returns 0 if it has ended within patience_ms, or holds
 * nothing then; else -1. */
int record_kill(const struct record *record, int patience_ms);

#endif
