/* SPDX-License-Identifier: Apache-2.0 */
#include "prolog/slurmconf.h"

#include "gojail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"
#define KEY "PlugStackConfig"
#define INCLUDES_MAX 8

/* Stores the name beside a file: a relative name is in the directory of file. */
static int place_beside(const char *file, const char *name, char *path, size_t size)
{
	const char *slash = strrchr(file, '/');
	int dir = name[0] == '/' || !slash ? 0 : (int)(slash - file + 1);

	return snprintf(path, size, "%.*s%s", dir, file, name) < (int)size ? 0 : -1;
}

/* Returns the value of KEY=VALUE in a line, which it changes, or NULL. Slurm takes several keys in one line, in any case of letters. */
static char *find_value(char *line)
{
	for (char *at = line; (at = strcasestr(at, KEY)); at++) {
		char *value = at + strlen(KEY);

		value += strspn(value, BLANKS);
		if ((at > line && !strchr(BLANKS, at[-1])) || *value != '=')
			continue;
		value++;
		value += strspn(value, BLANKS);
		if (*value == '"')
			value[1 + strcspn(value + 1, "\"")] = '\0';
		else
			value[strcspn(value, BLANKS)] = '\0';
		return *value == '"' ? value + 1 : value;
	}
	return NULL;
}

/* Stores the last value of a slurm.conf and what it includes. */
static int read_conf(const char *conf, char *path, size_t size, int depth)
{
	FILE *file = depth > INCLUDES_MAX ? NULL : fopen(conf, "re");
	char *line = NULL, *value;
	size_t room = 0;
	int rc = 0;

	if (!file)
		return -1;
	while (rc == 0 && getline(&line, &room, file) >= 0) {
		char included[GOJAIL_PATH_MAX];

		line[strcspn(line, "#")] = '\0';
		value = line + strspn(line, BLANKS);
		if (strncasecmp(value, "include", 7) == 0 && value[7] && strchr(BLANKS, value[7])) {
			value += 7 + strspn(value + 7, BLANKS);
			value[strcspn(value, BLANKS)] = '\0';
			if (place_beside(conf, value, included, sizeof(included)) < 0 || (read_conf(included, path, size, depth + 1) < 0 && errno != ENOENT))
				rc = -1;
		} else if ((value = find_value(line))) {
			rc = place_beside(conf, value, path, size);
		}
	}
	free(line);
	fclose(file);
	return rc;
}

int find_plugstack(const char *slurm_conf, char *path, size_t size)
{
	return place_beside(slurm_conf, "plugstack.conf", path, size) < 0 ? -1 : read_conf(slurm_conf, path, size, 0);
}
