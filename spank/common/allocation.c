/* SPDX-License-Identifier: Apache-2.0 */
#include "common/allocation.h"

#include "common/fd.h"
#include "common/sandbox.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file: words NAME=VALUE, in any order, each with its NUL; a value may have line feeds. */
#define FILE_MAX (sizeof(struct allocation) + 128)

/* The strings, in the order in which they are written. */
#define STRINGS(allocation)                                                                                            \
	{                                                                                                              \
		{"jail", (allocation)->options.jail, sizeof((allocation)->options.jail)},                              \
			{"net", (allocation)->options.net, sizeof((allocation)->options.net)},                         \
			{"root", (allocation)->options.root, sizeof((allocation)->options.root)},                      \
			{"mounts", (allocation)->options.mounts, sizeof((allocation)->options.mounts)},                \
			{"gpus", (allocation)->gpus, sizeof((allocation)->gpus)},                                      \
	}

static void format_path(char *path, size_t size, const struct node *node, const char *job)
{
	snprintf(path, size, "%s/" GOJAIL_ALLOCATED "/%s", node->state, job);
}

int allocation_write(const struct node *node, const char *job, const struct allocation *allocation)
{
	const struct {
		const char *name, *value;
		size_t size;
	} strings[] = STRINGS(allocation);
	char path[GOJAIL_PATH_MAX + 64], temporary[sizeof(path) + 8], text[FILE_MAX];
	size_t used;

	used = (size_t)snprintf(text, sizeof(text), "uid=%u", (unsigned)allocation->uid) + 1;
	used += (size_t)snprintf(text + used, sizeof(text) - used, "gid=%u", (unsigned)allocation->gid) + 1;
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s=%s", strings[i].name, strings[i].value) +
			1;
	snprintf(path, sizeof(path), "%s/" GOJAIL_ALLOCATED, node->state);
	mkdir(path, 0700);
	format_path(path, sizeof(path), node, job);
	snprintf(temporary, sizeof(temporary), "%s/" GOJAIL_ALLOCATED "/.%s", node->state, job);
	scoped_fd fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -1;
	if (write(fd, text, used) != (ssize_t)used || rename(temporary, path) < 0) {
		unlink(temporary);
		return -1;
	}
	job_forget_ended(node, job);
	return 0;
}

bool allocation_parse_id(const char *value, uint32_t *id)
{
	char *end;
	unsigned long number = strtoul(value, &end, 10);

	*id = (uint32_t)number;
	return value[0] >= '0' && value[0] <= '9' && !*end && number < UINT32_MAX;
}

/* Stores the value of one word. Reports whether it is known and fits. */
static bool parse_word(struct allocation *allocation, const char *word)
{
	struct {
		const char *name;
		char *value;
		size_t size;
	} strings[] = STRINGS(allocation);
	const char *value = strchr(word, '=');

	if (!value)
		return false;
	value++;
	if (strncmp(word, "uid=", 4) == 0)
		return allocation_parse_id(value, &allocation->uid);
	if (strncmp(word, "gid=", 4) == 0)
		return allocation_parse_id(value, &allocation->gid);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		if (strlen(strings[i].name) == (size_t)(value - 1 - word) &&
		    strncmp(word, strings[i].name, strlen(strings[i].name)) == 0)
			return snprintf(strings[i].value, strings[i].size, "%s", value) < (int)strings[i].size;
	return false;
}

int allocation_read(const struct node *node, const char *job, struct allocation *allocation)
{
	char path[GOJAIL_PATH_MAX + 64], text[FILE_MAX + 1];
	struct stat st;
	ssize_t got;

	*allocation = (struct allocation){.uid = UINT32_MAX, .gid = UINT32_MAX};
	format_path(path, sizeof(path), node, job);
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || (got = read(fd, text, sizeof(text))) <= 0 || text[got - 1])
		return -1;
	for (const char *word = text; word < text + got; word += strlen(word) + 1)
		if (!parse_word(allocation, word))
			return -1;
	allocation->made = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	return allocation->uid == UINT32_MAX || allocation->gid == UINT32_MAX ? -1 : 0;
}

void allocation_remove(const struct node *node, const char *job)
{
	char path[GOJAIL_PATH_MAX + 64];

	format_path(path, sizeof(path), node, job);
	unlink(path);
}
