/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A library with the part of NVML's interface that the checks use, for machines
 * without a GPU. What it answers stands in the file FILE.answers beside it, FILE
 * being the library itself, whose name begins with libnvidia-ml.so. nvmlInit_v2
 * reads it. A line is
 *
 *     GPU CALL CODE VALUE...      the answer: nvmlReturn_t, and what it writes
 *     GPU CALL wait MILLISECONDS  before it answers
 *     GPU CALL hang               it never does
 *
 * GPU is an index, "*" for each, or "-" where a call is not about one. Of several
 * lines for a call the last has it. A call without a line succeeds with zeros.
 */

#define _GNU_SOURCE
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUES 40
#define EXPORT __attribute__((visibility("default")))

struct answer {
	int code, count;
	long long value[VALUES];
	char text[128];
};

/* A line of the file. */
struct line {
	char whose[16], call[80];
	unsigned int hash; /* of the call */
	int hangs, waits;  /* waits: microseconds */
	struct answer answer;
};

static struct line *lines;
static size_t line_count;
static int known; /* the file was read */

/* Most lines are of another call: what a run asks for should cost next to nothing here. */
static unsigned int hash(const char *call)
{
	unsigned int h = 0;

	while (*call)
		h = 31 * h + (unsigned char)*call++;
	return h;
}

static struct line understand(const char *whose, const char *call, char *rest)
{
	struct line l = {.hangs = 0};
	struct answer *a = &l.answer;
	char *save = NULL, *word = strtok_r(rest, " \t\n", &save);

	snprintf(l.whose, sizeof(l.whose), "%s", whose);
	snprintf(l.call, sizeof(l.call), "%s", call);
	l.hash = hash(call);
	l.hangs = !strcmp(word, "hang");
	if (!strcmp(word, "wait") && (word = strtok_r(NULL, " \t\n", &save)))
		l.waits = atoi(word) * 1000;
	if (l.hangs || l.waits)
		return l;
	a->code = atoi(word);
	while ((word = strtok_r(NULL, " \t\n", &save)) && a->count < VALUES) {
		snprintf(a->text + strlen(a->text), sizeof(a->text) - strlen(a->text), "%s%s", a->count ? " " : "",
			 word);
		a->value[a->count++] = strtoll(word, NULL, 0);
	}
	return l;
}

/* The one that was loaded last. A program's calls go to the first library that it
 * had, for ever: that one answers for those that come after it. */
static int find(struct dl_phdr_info *info, size_t size, void *path)
{
	(void)size;
	if (strstr(info->dlpi_name, "libnvidia-ml.so"))
		snprintf(path, PATH_MAX, "%s.answers", info->dlpi_name);
	return 0;
}

static void learn(void)
{
	char path[PATH_MAX] = "", row[640], whose[16], call[80], rest[512];
	struct line *more;
	FILE *f;

	dl_iterate_phdr(find, path);
	line_count = 0;
	if (!(known = (f = fopen(path, "re")) != NULL))
		return;
	while (fgets(row, sizeof(row), f)) {
		if (row[0] == '#' || sscanf(row, "%15s %79s %511[^\n]", whose, call, rest) < 3)
			continue;
		if (!(more = realloc(lines, (line_count + 1) * sizeof(*lines))))
			break;
		lines = more;
		lines[line_count++] = understand(whose, call, rest);
	}
	fclose(f);
}

static struct answer ask(void *gpu, const char *call)
{
	struct answer a = {.code = known ? 0 : 999};
	long index = (long)gpu - 1;
	unsigned int wanted = hash(call);

	for (size_t i = 0; i < line_count; i++) {
		const struct line *l = &lines[i];

		if (l->hash != wanted || strcmp(l->call, call))
			continue;
		if (strcmp(l->whose, "*") &&
		    (gpu ? atol(l->whose) != index || !strcmp(l->whose, "-") : strcmp(l->whose, "-")))
			continue;
		if (l->hangs)
			for (;;)
				pause();
		if (l->waits)
			usleep((useconds_t)l->waits);
		else
			a = l->answer;
	}
	return a;
}

static int text(void *gpu, const char *call, char *to, unsigned int size)
{
	struct answer a = ask(gpu, call);

	if (!a.code)
		snprintf(to, size, "%s", a.text);
	return a.code;
}

static int one(void *gpu, const char *call, unsigned int *to)
{
	struct answer a = ask(gpu, call);

	if (!a.code)
		*to = (unsigned int)a.value[0];
	return a.code;
}

EXPORT int nvmlInit_v2(void)
{
	learn();
	return ask(NULL, __func__).code;
}

EXPORT int nvmlShutdown(void) { return ask(NULL, "nvmlShutdown").code; }
EXPORT int nvmlSystemGetDriverVersion(char *to, unsigned int size) { return text(NULL, __func__, to, size); }
EXPORT int nvmlDeviceGetCount_v2(unsigned int *n) { return one(NULL, __func__, n); }

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **gpu)
{
	*gpu = (void *)(long)(index + 1);
	return ask(*gpu, __func__).code;
}

EXPORT int nvmlDeviceGetName(void *gpu, char *to, unsigned int size) { return text(gpu, __func__, to, size); }
EXPORT int nvmlDeviceGetUUID(void *gpu, char *to, unsigned int size) { return text(gpu, __func__, to, size); }
EXPORT int nvmlDeviceGetMinorNumber(void *gpu, unsigned int *n) { return one(gpu, __func__, n); }
EXPORT int nvmlDeviceGetPersistenceMode(void *gpu, unsigned int *n) { return one(gpu, __func__, n); }
EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void *gpu, unsigned int *n) { return one(gpu, __func__, n); }
EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void *gpu, unsigned int *n) { return one(gpu, __func__, n); }
EXPORT int nvmlDeviceGetRetiredPagesPendingStatus(void *gpu, unsigned int *n) { return one(gpu, __func__, n); }

EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(void *gpu, unsigned int *n) { return one(gpu, __func__, n); }
EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(void *gpu, unsigned int *n) { return one(gpu, __func__, n); }
EXPORT int nvmlDeviceGetPcieReplayCounter(void *gpu, unsigned int *n) { return one(gpu, __func__, n); }
EXPORT int nvmlDeviceGetPowerUsage(void *gpu, unsigned int *n) { return one(gpu, __func__, n); }
EXPORT int nvmlDeviceValidateInforom(void *gpu) { return ask(gpu, __func__).code; }
EXPORT int nvmlDeviceGetVbiosVersion(void *gpu, char *to, unsigned int size) { return text(gpu, __func__, to, size); }

/* values: the mode, and the one after a reset */
EXPORT int nvmlDeviceGetMigMode(void *gpu, unsigned int *now, unsigned int *later)
{
	struct answer a = ask(gpu, __func__);

	*now = (unsigned int)a.value[0];
	*later = (unsigned int)a.value[1];
	return a.code;
}

/* values: percent of the GPU, of its memory */
EXPORT int nvmlDeviceGetUtilizationRates(void *gpu, unsigned int *to)
{
	struct answer a = ask(gpu, __func__);

	to[0] = (unsigned int)a.value[0];
	to[1] = (unsigned int)a.value[1];
	return a.code;
}

struct sram {
	unsigned int version;
	unsigned long long counts[11];
	unsigned int exceeded;
};

/* value: whether the threshold is exceeded */
EXPORT int nvmlDeviceGetSramEccErrorStatus(void *gpu, struct sram *to)
{
	struct answer a = ask(gpu, __func__);

	if (to->version != (sizeof(*to) | 1u << 24))
		return 25; /* argument version mismatch */
	to->exceeded = (unsigned int)a.value[0];
	return a.code;
}

struct pci {
	char legacy[16];
	unsigned int domain, bus, device, id, subsystem;
	char address[32];
};

EXPORT int nvmlDeviceGetPciInfo_v3(void *gpu, struct pci *to)
{
	memset(to, 0, sizeof(*to));
	return text(gpu, __func__, to->address, sizeof(to->address));
}

/* value: by sensor, by threshold, by link */
static int indexed(void *gpu, const char *call, unsigned int which, unsigned int *to)
{
	struct answer a = ask(gpu, call);

	if (!a.code && (int)which >= a.count)
		return 3; /* not supported */
	if (!a.code)
		*to = (unsigned int)a.value[which];
	return a.code;
}

EXPORT int nvmlDeviceGetTemperature(void *gpu, int sensor, unsigned int *n)
{
	return indexed(gpu, __func__, (unsigned int)sensor, n);
}
EXPORT int nvmlDeviceGetTemperatureThreshold(void *gpu, int which, unsigned int *n)
{
	return indexed(gpu, __func__, (unsigned int)which, n);
}
EXPORT int nvmlDeviceGetApplicationsClock(void *gpu, int which, unsigned int *n)
{
	return indexed(gpu, __func__, (unsigned int)which, n);
}
EXPORT int nvmlDeviceGetDefaultApplicationsClock(void *gpu, int which, unsigned int *n)
{
	return indexed(gpu, __func__, (unsigned int)which, n);
}
EXPORT int nvmlDeviceGetNvLinkState(void *gpu, unsigned int which, unsigned int *n)
{
	return indexed(gpu, __func__, which, n);
}

EXPORT int nvmlDeviceGetCurrentClocksEventReasons(void *gpu, unsigned long long *to)
{
	struct answer a = ask(gpu, __func__);

	if (!a.code)
		*to = (unsigned long long)a.value[0];
	return a.code;
}

/* values: corrected volatile, corrected aggregate, uncorrected volatile, uncorrected aggregate */
EXPORT int nvmlDeviceGetMemoryErrorCounter(void *gpu, int type, int counter, int place, unsigned long long *to)
{
	char call[64];
	struct answer a;

	snprintf(call, sizeof(call), "%s/%d", __func__, place);
	a = ask(gpu, call);
	if (!a.code)
		*to = (unsigned long long)a.value[2 * (type & 1) + (counter & 1)];
	return a.code;
}

EXPORT int nvmlDeviceGetRemappedRows(void *gpu, unsigned int *corrected, unsigned int *uncorrected,
				     unsigned int *pending, unsigned int *failed)
{
	struct answer a = ask(gpu, __func__);

	if (!a.code) {
		*corrected = (unsigned int)a.value[0];
		*uncorrected = (unsigned int)a.value[1];
		*pending = (unsigned int)a.value[2];
		*failed = (unsigned int)a.value[3];
	}
	return a.code;
}

/* values: the count of each cause */
EXPORT int nvmlDeviceGetRetiredPages(void *gpu, int cause, unsigned int *count, unsigned long long *to)
{
	struct answer a = ask(gpu, __func__);
	unsigned int room = *count;

	if (a.code)
		return a.code;
	*count = (unsigned int)a.value[cause & 1];
	if (room < *count)
		return 7; /* insufficient size */
	memset(to, 0, *count * sizeof(*to));
	return 0;
}

struct fabric {
	unsigned char cluster[16];
	int status;
	unsigned int clique;
	unsigned char state;
};

struct fabric_v2 {
	unsigned int version;
	struct fabric fabric;
	unsigned int health;
};

/* values: status, state, health mask, clique, the cluster's UUID as a number */
static struct answer ask_fabric(void *gpu, struct fabric *to)
{
	struct answer a = ask(gpu, "nvmlDeviceGetGpuFabricInfo");

	memset(to, 0, sizeof(*to));
	to->status = (int)a.value[0];
	to->state = (unsigned char)a.value[1];
	to->clique = (unsigned int)a.value[3];
	for (int i = 0; i < 8; i++)
		to->cluster[15 - i] = (unsigned char)(a.value[4] >> 8 * i);
	return a;
}

EXPORT int nvmlDeviceGetGpuFabricInfo(void *gpu, struct fabric *to) { return ask_fabric(gpu, to).code; }

/* It has the values of the call above, and a code of its own. */
EXPORT int nvmlDeviceGetGpuFabricInfoV(void *gpu, struct fabric_v2 *to)
{
	struct answer a = ask(gpu, __func__);

	if (a.code)
		return a.code;
	if (to->version != (sizeof(*to) | 2u << 24))
		return 25; /* argument version mismatch */
	a = ask_fabric(gpu, &to->fabric);
	to->health = (unsigned int)a.value[2];
	return a.code;
}

struct field {
	unsigned int id, scope;
	long long stamp, latency;
	int type, code;
	union {
		unsigned int number;
		unsigned long long room;
	} value;
};

/* nvmlDeviceGetFieldValues/ID: values: nvmlReturn_t of the field, value */
EXPORT int nvmlDeviceGetFieldValues(void *gpu, int count, struct field *fields)
{
	for (int i = 0; i < count; i++) {
		char call[64];
		struct answer a;

		snprintf(call, sizeof(call), "%s/%u", __func__, fields[i].id);
		a = ask(gpu, call);
		if (a.code)
			return a.code;
		fields[i].code = (int)a.value[0];
		fields[i].type = 1; /* unsigned int */
		fields[i].value.number = (unsigned int)a.value[1];
	}
	return 0;
}

/* Asks for a list. count is the room for it, and becomes its length; the code is 7 where it has more than there is room
 * for. */
static struct answer ask_list(void *gpu, const char *call, unsigned int *count)
{
	struct answer a = ask(gpu, call);
	unsigned int room = *count;

	if (a.code)
		return a;
	*count = (unsigned int)a.count;
	if (room < *count)
		a.code = 7;
	return a;
}

struct process {
	unsigned int pid;
	unsigned long long memory;
	unsigned int instance, compute;
};

/* values: pids */
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *gpu, unsigned int *count, struct process *to)
{
	struct answer a = ask_list(gpu, __func__, count);

	if (a.code)
		return a.code;
	for (int i = 0; i < a.count; i++) {
		memset(&to[i], 0, sizeof(to[i]));
		to[i].pid = (unsigned int)a.value[i];
	}
	return 0;
}

EXPORT int nvmlDeviceGetAccountingMode(void *gpu, unsigned int *n) { return one(gpu, __func__, n); }

/* values: the processes */
EXPORT int nvmlDeviceGetAccountingPids(void *gpu, unsigned int *count, unsigned int *to)
{
	struct answer a = ask_list(gpu, __func__, count);

	if (a.code)
		return a.code;
	for (int i = 0; i < a.count; i++)
		to[i] = (unsigned int)a.value[i];
	return 0;
}

struct accounting {
	unsigned int utilization, memory_utilization;
	unsigned long long memory_peak, time, start;
	unsigned int is_running, reserved[5];
};

/* nvmlDeviceGetAccountingStats/PID: values: percent of the time, bytes at most, ms, start in us since 1970 */
EXPORT int nvmlDeviceGetAccountingStats(void *gpu, unsigned int pid, struct accounting *to)
{
	char call[80];
	struct answer a;

	snprintf(call, sizeof(call), "%s/%u", __func__, pid);
	a = ask(gpu, call);
	memset(to, 0, sizeof(*to));
	to->utilization = (unsigned int)a.value[0];
	to->memory_peak = (unsigned long long)a.value[1];
	to->time = (unsigned long long)a.value[2];
	to->start = (unsigned long long)a.value[3];
	return a.code;
}
