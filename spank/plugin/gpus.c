/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpus.h"

#include "plugin/share.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

int show_gpus(const struct jail *jail, const char *list, int mnt, int root, struct fault *fault)
{
	const char *paths[GOJAIL_GPU_NODES_MAX];
	int count = 0;

	if (jail->ngpus && strspn(list, "0123456789,-") != strlen(list))
		return fault_set(fault, "cannot find the job's GPUs: Slurm lists them as \"%s\", not by number; ask your administrator", list);
	for (int i = 0; i < jail->ngpus; i++)
		if (has_index(list, jail->gpus[i].index))
			paths[count++] = jail->gpus[i].path;
	return count ? share_devices(mnt, root, paths, count, fault) : 0;
}
