/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"
#include "common/fd.h"
#include "common/journal.h"
#include "common/lock.h"
#include "gojail.h"
#include "launcher/child.h"
#include "launcher/library.h"
#include "launcher/verbs.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The use of a job's GPUs. */
struct gpu_use {
	uint64_t busy_ms;     /* how long kernels of its processes ran, summed up over GPUs */
	uint64_t memory_peak; /* the most bytes that one process had on a GPU */
};

#define NVML "libnvidia-ml.so.1"
#define PIDS_MAX 8192 /* the driver keeps 4000 processes of a GPU, unless it is told otherwise */
#define MINORS_MAX 64

/* What is used of nvml.h. */
enum { NVML_SUCCESS = 0, NVML_ERROR_NOT_FOUND = 6, ENABLED = 1 };
typedef void *gpu_handle;

struct accounting_stats {     /* nvmlAccountingStats_t */
	unsigned utilization; /* percent of the time */
	unsigned memory_utilization;
	unsigned long long memory_peak; /* bytes */
	unsigned long long time;        /* ms; 0 while the process runs */
	unsigned long long start;       /* us of the real-time clock */
	unsigned is_running;
	unsigned reserved[5];
};
#define UNKNOWN_PERCENT 0xffffffffu
#define UNKNOWN_BYTES 0xffffffffffffffffull

static struct {
	int (*init)(void);
	int (*count)(unsigned *);
	int (*handle)(unsigned, gpu_handle *);
	int (*minor)(gpu_handle, unsigned *);
	int (*mode)(gpu_handle, unsigned *);
	int (*pids)(gpu_handle, unsigned *, unsigned *);
	int (*stats)(gpu_handle, unsigned, struct accounting_stats *);
} nvml;

/* Loads the driver's library. Returns 0, or -1 if it is missing or an older one lacks a function. */
static int load_nvml(void)
{
	static const struct {
		const char *name;
		void *to;
	} functions[] = {
		{"nvmlInit_v2", &nvml.init},
		{"nvmlDeviceGetCount_v2", &nvml.count},
		{"nvmlDeviceGetHandleByIndex_v2", &nvml.handle},
		{"nvmlDeviceGetMinorNumber", &nvml.minor},
		{"nvmlDeviceGetAccountingMode", &nvml.mode},
		{"nvmlDeviceGetAccountingPids", &nvml.pids},
		{"nvmlDeviceGetAccountingStats", &nvml.stats},
	};
	void *library = dlopen(NVML, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!library || !(*(void **)functions[i].to = dlsym(library, functions[i].name)))
			return -1;
	return nvml.init() == NVML_SUCCESS ? 0 : -1;
}

/* Adds what the processes of one GPU used of it. Returns 0 or -1. */
static int add_processes(gpu_handle gpu, int64_t begun, int64_t ended, struct gpu_use *use)
{
	static unsigned pids[PIDS_MAX];
	unsigned count = PIDS_MAX, mode = 0;

	if (nvml.mode(gpu, &mode) != NVML_SUCCESS || mode != ENABLED || nvml.pids(gpu, &count, pids) != NVML_SUCCESS)
		return -1;
	for (unsigned i = 0; i < count && i < PIDS_MAX; i++) {
		struct accounting_stats stats = {0};
		int result = nvml.stats(gpu, pids[i], &stats);
		int64_t start = (int64_t)(stats.start / 1000000);

		if (result == NVML_ERROR_NOT_FOUND) /* it gave way to a newer process */
			continue;
		if (result != NVML_SUCCESS)
			return -1;
		if (start < begun || start > ended)
			continue; /* another job's */
		if (stats.utilization == UNKNOWN_PERCENT)
			return -1;
		use->busy_ms += stats.time * stats.utilization / 100;
		if (stats.memory_peak != UNKNOWN_BYTES && stats.memory_peak > use->memory_peak)
			use->memory_peak = stats.memory_peak;
	}
	return 0;
}

/* Reports whether a list of numbers has this one. */
static bool has_number(const char *list, unsigned number)
{
	for (char *end; *list; list = *end ? end + 1 : end)
		if (strtoul(list, &end, 10) == number)
			return true;
	return false;
}

/* Adds what the processes of all these GPUs used. Returns 0, or -1 if the driver does not know one of them. */
static int add_gpus(const char *minors, int64_t begun, int64_t ended, struct gpu_use *use)
{
	unsigned count = 0, wanted = 1, found = 0;

	for (const char *at = minors; (at = strchr(at, ',')); at++)
		wanted++;
	if (load_nvml() < 0 || nvml.count(&count) != NVML_SUCCESS)
		return -1;
	for (unsigned i = 0; i < count && i < MINORS_MAX; i++) {
		unsigned minor = 0;
		gpu_handle gpu;

		if (nvml.handle(i, &gpu) != NVML_SUCCESS || nvml.minor(gpu, &minor) != NVML_SUCCESS ||
		    !has_number(minors, minor))
			continue; /* another one may be lost */
		if (add_processes(gpu, begun, ended, use) < 0)
			return -1;
		found++;
	}
	return found == wanted ? 0 : -1;
}

/*
 * Reads the use of the GPUs with these device numbers, "0,3" (of /dev/nvidia0 and /dev/nvidia3), by processes that
 * began in this time (seconds of the real-time clock). Returns 0, or -1 if the driver does not count it or does not
 * answer in time. The driver's library is loaded in a child: a call of it may hang. While such a child exists, nobody
 * starts another one.
 */
static int read_gpu_use(struct gpu_use *use, const struct node *node, const char *minors, int64_t begun, int64_t ended,
			int64_t until)
{
	scoped_fd state = open(node->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fault ignored = {0};
	struct child child;
	int socket, result;

	/* The child has the lock, too, and keeps it as long as it hangs. */
	scoped_fd lock = state < 0 ? -1 : lock_until(state, GOJAIL_NVML_LOCK, until, "the driver's library", &ignored);
	if (lock < 0)
		return -1;
	switch (child_fork(&child, &socket)) {
	case -1:
		return -1;
	case 0:
		if (add_gpus(minors, begun, ended, use) == 0)
			send(socket, use, sizeof(*use), MSG_NOSIGNAL);
		_exit(0);
	}
	result = clock_await(socket, until) && recv(socket, use, sizeof(*use), 0) == sizeof(*use) ? 0 : -1;
	child_end(&child, &socket);
	return result;
}

#define GPU_USE_MS 10000 /* a driver without persistence mode initializes all GPUs first */

/* Writes the fields of the use of GPUs. */
static void write_gpu_fields(char *text, size_t size, const struct node *node, int64_t until)
{
	struct gpu_use use = {0};
	int64_t patience = clock_ms() + GPU_USE_MS;

	if (read_gpu_use(&use, node, library_word("gpus"), atoll(library_word("begun")), atoll(library_word("ended")),
			 patience < until ? patience : until) < 0)
		snprintf(text, size, " gpu_seconds=- gpu_memory_peak=-");
	else
		snprintf(text, size, " gpu_seconds=%" PRIu64 " gpu_memory_peak=%" PRIu64, (use.busy_ms + 500) / 1000,
			 use.memory_peak);
}

int ended_report(const struct node *node, int64_t until, struct fault *fault)
{
	char gpus[96] = "";

	if (*library_word("gpus"))
		write_gpu_fields(gpus, sizeof(gpus), node, until);
	journal_ended(library_word("summary"), gpus, library_word("error"));
	if (!*library_word("field"))
		return 0;
	if (library_set_word(fault, "summary=%s%s", library_word("summary"), gpus) < 0)
		return -1;
	return library_call_in_child("ended", until, fault);
}
