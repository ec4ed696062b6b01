/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.c: the device nodes of the GPUs that Slurm gave the step. */

#include "common/fd.h"
#include "common/share.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reports whether a list such as "0,2,4-7", as gres_common.c of Slurm writes it, has the index. */
static bool has_index(const char *list, unsigned long index)
{
	while (*list >= '0' && *list <= '9') {
		char *end;
		unsigned long first = strtoul(list, &end, 10);
		unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;

		if (first <= index && index <= last)
			return true;
		list = *end == ',' ? end + 1 : end;
	}
	return false;
}

/* Finds the device nodes of the GPUs in the list. Returns their number. */
static int find_nodes(const struct jail *jail, const char *list, const char **paths)
{
	int count = 0;

	for (int i = 0; i < jail->ngpus; i++)
		if (has_index(list, jail->gpus[i].index))
			paths[count++] = jail->gpus[i].path;
	return count;
}

int show_gpus(const struct jail *jail, const char *list, int mnt, int root, struct fault *fault)
{
	const char *paths[GOJAIL_GPU_NODES_MAX];
	int count;

	if (jail->ngpus && strspn(list, "0123456789,-") != strlen(list))
		return fault_set(
			fault,
			"cannot find the job's GPUs: Slurm lists them as \"%s\", not by number; ask your administrator",
			list);
	count = find_nodes(jail, list, paths);
	return count ? share_devices(mnt, root, paths, count, fault) : 0;
}

#define NOTES_MAX 16384 /* bytes: no node has so many kinds of step */

/* Adds the device nodes of the GPUs to those of the job, some of them once more: what the end of the job asks the
 * driver about. */
static void note_nodes(const struct node *node, const char *job, const struct jail *jail, const char *list)
{
	char path[GOJAIL_PATH_MAX + 64], text[GOJAIL_GPU_NODES_MAX * (sizeof(jail->gpus[0].path) + 1)];
	const char *paths[GOJAIL_GPU_NODES_MAX];
	size_t used = 0;

	for (int i = 0, count = find_nodes(jail, list, paths); i < count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\n", paths[i]);
	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s/" GOJAIL_GPU_NODES, node->state, job);
	scoped_fd fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && used)
		write_ignored(fd, text, used);
}

void note_gpus(const struct node *node, const char *job, const struct jail *jail, const char *list)
{
	char path[GOJAIL_PATH_MAX + 64], line[GOJAIL_NAME_MAX + GOJAIL_GRES_MAX + 4], have[NOTES_MAX + 2];
	int length = snprintf(line, sizeof(line), "\n%s %s\n", jail->name, list);
	ssize_t got;

	if (!jail->ngpus || !list[0] || length >= (int)sizeof(line))
		return;
	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s/" GOJAIL_GPUS, node->state, job);
	scoped_fd fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	have[0] = '\n';
	if (fd < 0 || (got = read(fd, have + 1, NOTES_MAX)) < 0 || got + length > NOTES_MAX)
		return;
	have[1 + got] = '\0';
	/* Two steps at once may both write the line, which does no harm. */
	if (strstr(have, line))
		return;
	write_ignored(fd, line + 1, (size_t)length - 1);
	note_nodes(node, job, jail, list);
}
