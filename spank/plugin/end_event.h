/* SPDX-License-Identifier: Apache-2.0 */
/* end_event.h: the line of the plugin in the journal for the end of a job; docs/metrics.md has its fields. */
#ifndef GOJAIL_END_EVENT_H
#define GOJAIL_END_EVENT_H

#include "common/fault.h"
#include "common/node.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Reads a file of a node's or a job's records as words separated by commas; "" where there is none. */
void read_words(int dir, const char *name, char *text, size_t size);

/* What is known of a job that ends, read before its records are removed. */
struct summary {
	bool known;
	bool others; /* another user's job of the same number left it: the record in slurmdbd is not that job's */
	char uid[16];
	char jails[256], versions[256]; /* separated by commas */
	char memory[32];                /* bytes, at most; "" where no cgroup says so */
	bool has_gpus;                  /* of NVIDIA */
	char gpus[256];  /* the numbers of their device nodes; "" where the driver does not count what jobs use of them
			  */
	long long begun; /* Unix seconds */
};

/* uid is the user whose job ends. */
void summary_read(struct summary *summary, const struct node *node, const char *job, uid_t uid);

/*
 * A job has ended; net has the fields of what its rails carried, or is "", fault is why not all of it is gone, or
 * empty. Where the driver of its GPUs is to be asked, the launcher does that and sends the line: nobody waits for a
 * driver.
 */
void event_ended(const struct summary *summary, const struct node *node, const char *job, const char *net,
		 const struct fault *fault);

#endif
