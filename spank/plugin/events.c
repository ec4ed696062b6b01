/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/events.h"

#include "common/fd.h"
#include "common/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <slurm/slurm.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const reasons[] = {
	[GOJAIL_REASON_CONFIGURATION] = "configuration",
	[GOJAIL_REASON_REQUEST] = "request",
	[GOJAIL_REASON_STORAGE] = "storage",
	[GOJAIL_REASON_SANDBOX] = "sandbox",
	[GOJAIL_REASON_STEP] = "step",
	[GOJAIL_REASON_TASK] = "task",
};

/* Reads a file of a job's records as words separated by commas; "" where there is none. */
static void read_words(int dir, const char *name, char *text, size_t size)
{
	scoped_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t got = fd < 0 ? 0 : read(fd, text, size - 1);

	text[got < 0 ? 0 : got] = '\0';
	while (text[0] && strchr(" \n", text[strlen(text) - 1]))
		text[strlen(text) - 1] = '\0';
	for (char *at = text; (at = strpbrk(at, " \n")); at++)
		*at = ',';
}

static int open_job_of(const struct node *node, const char *job)
{
	char path[GOJAIL_PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s", node->state, job);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

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

void event_entered(const struct step *step, spank_t sp, uint32_t id, const char *jail)
{
	char who[96], path[GOJAIL_PATH_MAX + 128], versions[256];

	snprintf(path, sizeof(path), "%s/" GOJAIL_JAILS "/%s/" GOJAIL_VERSIONS, step->node.state, jail);
	read_words(AT_FDCWD, path, versions, sizeof(versions));
	journal_write(JOURNAL_INFO, "event=entered %s jail=%s version=%s", describe_step(who, sizeof(who), sp, id), jail,
		      versions[0] ? versions : "-");
}

void event_failed(const struct step *step, spank_t sp, uint32_t id, const char *jail)
{
	char who[96], why[GOJAIL_TEXT_MAX];

	journal_write(JOURNAL_ERROR, "event=failed %s jail=%s reason=%s error=\"%s\"", describe_step(who, sizeof(who), sp, id),
		      jail[0] ? jail : "-", reasons[step->fault.silent ? GOJAIL_REASON_STORAGE : step->reason],
		      journal_quote(why, sizeof(why), step->fault.text));
}

/* Adds a word to a list, unless it is there or too long. */
static void add_word(char *list, size_t size, const char *word)
{
	size_t used = strlen(list), length = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at++)
		if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
			return;
	if (length && used + length + 2 < size)
		snprintf(list + used, size - used, "%s%s", used ? "," : "", word);
}

static bool has_suffix(const char *text, const char *suffix)
{
	size_t length = strlen(text), tail = strlen(suffix);

	return length > tail && strcmp(text + length - tail, suffix) == 0;
}

/* Reports whether a name in the directory of a job is that of a sandbox's record. */
static bool is_sandbox(const char *name)
{
	return name[0] != '.' && strcmp(name, GOJAIL_LOCK) && !has_suffix(name, GOJAIL_SPEC_SUFFIX) && !has_suffix(name, GOJAIL_MOUNTS_SUFFIX);
}

void summary_read(struct summary *summary, const struct node *node, const char *job)
{
	int fd = open_job_of(node, job);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char name[GOJAIL_NAME_MAX + 64], word[128];

	*summary = (struct summary){.known = dir != NULL};
	if (!dir) {
		close_fd(&fd);
		return;
	}
	read_words(dirfd(dir), GOJAIL_OWNER, summary->uid, sizeof(summary->uid));
	read_words(dirfd(dir), GOJAIL_MEMORY, summary->memory, sizeof(summary->memory));
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (!is_sandbox(entry->d_name))
			continue;
		snprintf(name, sizeof(name), ".%.*s." GOJAIL_VERSIONS, GOJAIL_NAME_MAX + 17, entry->d_name);
		read_words(dirfd(dir), name, word, sizeof(word));
		add_word(summary->versions, sizeof(summary->versions), word);
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(entry->d_name, "+"), entry->d_name);
		add_word(summary->jails, sizeof(summary->jails), word);
	}
	closedir(dir);
}

static const char *or_none(const char *value)
{
	return value[0] ? value : "-";
}

void event_ended(const struct summary *summary, const char *job, const struct fault *fault)
{
	char what[1024], why[GOJAIL_TEXT_MAX];

	if (!summary->known)
		return; /* it had no jail here */
	snprintf(what, sizeof(what), "event=ended job=%s uid=%s jail=%s version=%s memory_peak=%s", job, or_none(summary->uid),
		 or_none(summary->jails), or_none(summary->versions), or_none(summary->memory));
	if (fault->text[0])
		journal_write(JOURNAL_ERROR, "%s error=\"%s\"", what, journal_quote(why, sizeof(why), fault->text));
	else
		journal_write(JOURNAL_INFO, "%s", what);
}
