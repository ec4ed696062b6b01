/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/ended.h"

#include "common/clock.h"
#include "common/journal.h"
#include "launcher/gpu_use.h"
#include "launcher/library.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define GPU_USE_MS 10000 /* a driver without persistence mode initializes all GPUs first */

/* Writes the fields of the use of GPUs. */
static void write_gpu_fields(char *text, size_t size, const struct node *node, int64_t until)
{
	struct gpu_use use = {0};
	int64_t patience = clock_ms() + GPU_USE_MS;

	if (gpu_use_read(&use, node, library_word("gpus"), atoll(library_word("begun")), atoll(library_word("ended")),
			 patience < until ? patience : until) < 0)
		snprintf(text, size, " gpu_seconds=- gpu_memory_peak=-");
	else
		snprintf(text, size, " gpu_seconds=%" PRIu64 " gpu_memory_peak=%" PRIu64, (use.busy_ms + 500) / 1000,
			 use.memory_peak);
}

int ended_report(const struct node *node, int64_t until, struct fault *fault)
{
	static char summary[2048];
	char gpus[96] = "";

	if (*library_word("gpus"))
		write_gpu_fields(gpus, sizeof(gpus), node, until);
	journal_ended(library_word("summary"), gpus, library_word("error"));
	if (!*library_word("field"))
		return 0;
	snprintf(summary, sizeof(summary), "summary=%s%s", library_word("summary"), gpus);
	library_replace_word(summary);
	return library_call_in_child("ended", until, fault);
}
