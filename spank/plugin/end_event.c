/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/end_event.h"

#include "common/fd.h"
#include "common/job_find.h"
#include "common/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void read_words(int dir, const char *name, char *text, size_t size)
{
	scoped_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t got = fd < 0 ? 0 : read(fd, text, size - 1);

	text[got < 0 ? 0 : got] = '\0';
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

static bool has_suffix(const char *text, const char *suffix)
{
	size_t length = strlen(text), tail = strlen(suffix);

	return length > tail && strcmp(text + length - tail, suffix) == 0;
}

/* Reports whether a name in the directory of a job is that of a sandbox's record. */
static bool is_sandbox(const char *name)
{
	static const char *const beside[] = {GOJAIL_SPEC_SUFFIX, GOJAIL_MOUNTS_SUFFIX, GOJAIL_STORAGE_SUFFIX};

	for (unsigned i = 0; i < sizeof(beside) / sizeof(beside[0]); i++)
		if (has_suffix(name, beside[i]))
			return false;
	return name[0] != '.' && strcmp(name, GOJAIL_LOCK);
}

void summary_read(struct summary *summary, const struct node *node, const char *job)
{
	int fd = job_open(node, job);
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
