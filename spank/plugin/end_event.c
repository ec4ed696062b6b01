/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"
#include "common/fd.h"
#include "common/journal.h"
#include "common/launch.h"
#include "common/sandbox.h"
#include "common/site.h"
#include "plugin/events.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

void read_words(int dir, const char *name, char *text, size_t size)
{
	read_file(dir, name, text, size);
	while (text[0] && strchr(" \n", text[strlen(text) - 1]))
		text[strlen(text) - 1] = '\0';
	for (char *at = text; (at = strpbrk(at, " \n")); at++)
		*at = ',';
}

/* Adds a word to a list, unless it is there or too long. */
static void add_word(char *list, size_t size, const char *word)
{
	size_t used = strlen(list), length = strlen(word);

	if (!length)
		return;
	for (const char *at = list; (at = strstr(at, word)); at++)
		if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
			return;
	if (used + length + 2 < size)
		snprintf(list + used, size - used, "%s%s", used ? "," : "", word);
}

#define GPU_NODE "/dev/nvidia"
/* Of a GPU instance of MIG, for which the driver does no accounting (nvml.h). */
#define CAPABILITY_NODE "/dev/nvidia-caps/"

/* Reads which GPUs of NVIDIA the job's steps got. */
static void read_gpus(struct summary *summary, int dir)
{
	static char text[16384]; /* what is beyond it is not asked about */
	char *rest = NULL;
	bool instances = false;

	read_words(dir, GOJAIL_GPU_NODES, text, sizeof(text));
	for (char *path = strtok_r(text, ",", &rest); path; path = strtok_r(NULL, ",", &rest)) {
		const char *number = path + strlen(GPU_NODE);

		instances = instances || strncmp(path, CAPABILITY_NODE, strlen(CAPABILITY_NODE)) == 0;
		if (strncmp(path, GPU_NODE, strlen(GPU_NODE)) || !*number || number[strspn(number, "0123456789")])
			continue;
		summary->has_gpus = true;
		add_word(summary->gpus, sizeof(summary->gpus), number);
	}
	if (instances)
		summary->gpus[0] = '\0';
}

void summary_read(struct summary *summary, const struct node *node, const char *job, uid_t uid)
{
	scoped_list *dir = job_open_list(node, job);
	char name[GOJAIL_NAME_MAX + 64], word[128];
	struct stat owner;

	*summary = (struct summary){.known = dir != NULL};
	if (!dir)
		return;
	summary->others = !job_has_owner(dirfd(dir), uid);
	read_words(dirfd(dir), GOJAIL_OWNER, summary->uid, sizeof(summary->uid));
	read_words(dirfd(dir), GOJAIL_MEMORY, summary->memory, sizeof(summary->memory));
	read_gpus(summary, dirfd(dir));
	if (fstatat(dirfd(dir), GOJAIL_OWNER, &owner, AT_SYMLINK_NOFOLLOW) == 0)
		summary->begun = (long long)owner.st_mtime;
	for (const char *sandbox; (sandbox = job_next_sandbox(dir));) {
		snprintf(name, sizeof(name), ".%.*s." GOJAIL_VERSIONS, GOJAIL_NAME_MAX + 17, sandbox);
		read_words(dirfd(dir), name, word, sizeof(word));
		add_word(summary->versions, sizeof(summary->versions), word);
		sandbox_write_jail(sandbox, word, sizeof(word));
		add_word(summary->jails, sizeof(summary->jails), word);
	}
}

static const char *or_none(const char *value) { return value[0] ? value : "-"; }

#define REPORT_MS (5 * 60 * 1000)

/* Lets the launcher ask the driver, send the line, and fill the field. Returns 0, or -1 if it cannot be started. */
static int start_report(const struct summary *summary, const struct node *node, const char *job, const char *what,
			const char *field, const struct fault *fault)
{
	struct launch launch;

	launch_prepare(&launch, node, "ended", clock_ms() + REPORT_MS);
	launch_add_word(&launch, "job=%s", job);
	launch_add_word(&launch, "summary=%s", what);
	launch_add_word(&launch, "field=%s", field);
	launch_add_word(&launch, "error=%s", fault->text);
	launch_add_word(&launch, "gpus=%s", summary->gpus);
	launch_add_word(&launch, "begun=%lld", summary->begun);
	launch_add_word(&launch, "ended=%lld", (long long)time(NULL));
	return launch_detached(&launch);
}

/* Reports whether this node is the job's first, as slurmd tells a job's Epilog. */
static bool is_first_of_job(const struct node *node)
{
	const char *list = getenv("SLURM_JOB_NODELIST");

	if (!list)
		list = getenv("SLURM_NODELIST");
	return list && is_first_node(list, node->name);
}

void event_ended(const struct summary *summary, const struct node *node, const char *job, const char *net,
		 const struct fault *fault)
{
	char what[1280], field[32] = "";

	if (!summary->known)
		return; /* it had no jail here */
	if (!summary->others && is_first_of_job(node))
		site_read_summary(node, field, sizeof(field));
	snprintf(what, sizeof(what), "event=ended job=%s uid=%s jail=%s version=%s memory_peak=%s%s%s", job,
		 or_none(summary->uid), or_none(summary->jails), or_none(summary->versions), or_none(summary->memory),
		 net[0] ? " " : "", net);
	if ((!summary->gpus[0] && !field[0]) || start_report(summary, node, job, what, field, fault) < 0)
		journal_ended(what, summary->has_gpus ? " gpu_seconds=- gpu_memory_peak=-" : "", fault->text);
}
