/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/events.h"

#include "common/journal.h"

#include <fcntl.h>
#include <slurm/slurm.h>
#include <stdio.h>

static const char *const reasons[] = {
	[GOJAIL_REASON_CONFIGURATION] = "configuration",
	[GOJAIL_REASON_REQUEST] = "request",
	[GOJAIL_REASON_STORAGE] = "storage",
	[GOJAIL_REASON_SANDBOX] = "sandbox",
	[GOJAIL_REASON_STEP] = "step",
	[GOJAIL_REASON_TASK] = "task",
};

/* Writes "job=17 step=0 uid=1000", as far as Slurm says so. */
static const char *describe_step(char *text, size_t size, spank_t sp, uint32_t id)
{
	uint32_t job = 0;
	uid_t uid = 0;
	char step[16];

	spank_get_item(sp, S_JOB_ID, &job);
	spank_get_item(sp, S_JOB_UID, &uid);
	snprintf(step, sizeof(step), "%u", (unsigned)id);
	snprintf(text, size, "job=%u step=%s uid=%u", (unsigned)job,
		 id == SLURM_BATCH_SCRIPT     ? "batch" :
		 id == SLURM_INTERACTIVE_STEP ? "interactive" :
						step,
		 (unsigned)uid);
	return text;
}

void event_entered(const struct node *node, spank_t sp, uint32_t id, const char *jail)
{
	char who[96], path[GOJAIL_PATH_MAX + 128], versions[256];

	snprintf(path, sizeof(path), "%s/" GOJAIL_JAILS "/%s/" GOJAIL_VERSIONS, node->state, jail);
	read_words(AT_FDCWD, path, versions, sizeof(versions));
	journal_write(JOURNAL_INFO, "event=entered %s jail=%s version=%s", describe_step(who, sizeof(who), sp, id),
		      jail, versions[0] ? versions : "-");
}

void event_failed(int reason, const struct fault *fault, spank_t sp, uint32_t id, const char *jail)
{
	char who[96], why[GOJAIL_TEXT_MAX];

	journal_write(JOURNAL_ERROR, "event=failed %s jail=%s reason=%s error=\"%s\"",
		      describe_step(who, sizeof(who), sp, id), jail[0] ? jail : "-", reasons[reason],
		      journal_quote(why, sizeof(why), fault->text));
}
