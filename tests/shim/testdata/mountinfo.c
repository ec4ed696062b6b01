// SPDX-License-Identifier: Apache-2.0
//
// Prints the mounts of the mountinfo on standard input, or why it is not read; or what describes each path of the
// arguments.

#include "launcher/mountinfo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct mount_table table;
	char place[256];

	if (mountinfo_read(0, &table) < 0)
		printf("%m %zu\n", table.count);
	for (size_t i = 0; i < table.count && argc == 1; i++) {
		const struct mount_line *m = &table.list[i];

		printf("%" PRIu64 " %" PRIu64 " %u:%u %s|%s|%s|%s|%s\n", m->id, m->parent, m->major, m->minor, m->root,
		       m->path, m->type, m->source, m->options);
	}
	for (int i = 1; i < argc; i++) {
		mountinfo_describe(&table, argv[i], place, sizeof(place));
		printf("%s\n", place);
	}
	mountinfo_free(&table);
	return 0;
}
