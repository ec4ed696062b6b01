/* SPDX-License-Identifier: Apache-2.0 */
/* events.h: what the plugin tells of steps and jobs: lines in the journal, and counters (docs/metrics.md). */
#ifndef GOJAIL_EVENTS_H
#define GOJAIL_EVENTS_H

#include "common/fault.h"
#include "common/node.h"
#include "gojail.h"

#include <slurm/spank.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The first step of a job in a jail has its sandbox. */
void event_entered(const struct node *node, spank_t sp, uint32_t id, const char *jail);

/* A step cannot enter its jail, which may be "", for that reason, GOJAIL_REASON_..., and fault. */
void event_failed(int reason, const struct fault *fault, spank_t sp, uint32_t id, const char *jail);

/* Reads a file of a node's or a job's records as words separated by commas; "" if there is none. */
void read_words(int dir, const char *name, char *text, size_t size);

/* What is known of a job that ends, read before its records are removed. */
struct summary {
	bool known;
	bool others; /* another user's job of the same number left it: the record in slurmdbd is not that job's */
	char uid[16];
	char jails[256], versions[256]; /* separated by commas */
	char memory[32];                /* bytes, at most; "" if no cgroup says so */
	bool has_gpus;                  /* of NVIDIA */
	char gpus[256];  /* the numbers of their device nodes; "" if the driver does not count what jobs use of them
			  */
	long long begun; /* Unix seconds */
};

/* uid is the user whose job ends. */
void summary_read(struct summary *summary, const struct node *node, const char *job, uid_t uid);

/*
 * A job has ended; net has the fields of what its rails carried, or is "", fault is why not all of it is gone, or
 * empty. If the driver of the job's GPUs must be asked, the launcher asks it and sends the line: nobody waits for a
 * driver.
 */
void event_ended(const struct summary *summary, const struct node *node, const char *job, const char *net,
		 const struct fault *fault);

/* Reports whether a node is the first of a list such as "n[1-4,7],x9" (hostlist.c of Slurm). */
bool is_first_node(const char *list, const char *node);

/*
 * Maps the counters of a jail, or with "" those of steps whose jail is not known, for this process and the tasks that
 * it forks. Returns NULL if that is not possible.
 */
struct gojail_launches *launches_map(const struct node *node, const char *jail);

/* The rest does nothing with NULL. */
void launches_count_entered(struct gojail_launches *launches, int64_t took_us);
void launches_count_failed(struct gojail_launches *launches, int reason);

#endif
