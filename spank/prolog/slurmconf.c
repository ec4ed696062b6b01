/* SPDX-License-Identifier: Apache-2.0 */
/* slurmconf.c: finds the plugstack.conf that a slurm.conf names. */
#include "gojail.h"
#include "prolog/prolog.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"
#define INCLUDES_MAX 8

/* The values that are read from slurm.conf. */
struct conf {
	char *path; /* of plugstack.conf */
	size_t size;
	char cluster[GOJAIL_PATH_MAX]; /* ClusterName in lower case; "" until its line is read */
	bool *in_job;
};

/* Stores the path of a name that is relative to the directory of file, or absolute. Returns 0, or -1 with errno. */
static int resolve_beside(const char *file, const char *name, char *path, size_t size)
{
	const char *slash = strrchr(file, '/');
	int dir = name[0] == '/' || !slash ? 0 : (int)(slash - file + 1);

	if (snprintf(path, size, "%.*s%s", dir, file, name) < (int)size)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

/* Copies the value of KEY=VALUE in a line. Slurm accepts several keys in one line, in upper or lower case. Reports
 * whether the key is there and its value fits. */
static bool find_value(const char *line, const char *key, char *value, size_t size)
{
	for (const char *at = line; (at = strcasestr(at, key)); at++) {
		const char *from = at + strlen(key);
		size_t length;

		from += strspn(from, BLANKS);
		if ((at > line && !strchr(BLANKS, at[-1])) || *from != '=')
			continue;
		from++;
		from += strspn(from, BLANKS);
		length = *from == '"' ? strcspn(from + 1, "\"") : strcspn(from, BLANKS);
		from += *from == '"';
		return snprintf(value, size, "%.*s", (int)length, from) < (int)size;
	}
	return false;
}

/* Stores the path of an included file, in whose name Slurm replaces %c by the cluster's name (_parse_for_format in
 * parse_config.c). Returns 0, or -1 with errno. */
static int resolve_included(const struct conf *conf, const char *file, const char *name, char *path, size_t size)
{
	const char *format = strstr(name, "%c");
	char whole[3 * GOJAIL_PATH_MAX];

	if (!format)
		return resolve_beside(file, name, path, size);
	if (snprintf(whole, sizeof(whole), "%.*s%s%s", (int)(format - name), name, conf->cluster, format + 2) <
	    (int)sizeof(whole))
		return resolve_beside(file, whole, path, size);
	errno = ENAMETOOLONG;
	return -1;
}

static int read_conf(struct conf *conf, const char *path, int depth);

/* Reads an included file. Ignores a missing one, which slurmd reports. Returns 0, or -1 with errno. */
static int read_included(struct conf *conf, const char *file, char *name, int depth)
{
	char path[GOJAIL_PATH_MAX];

	name[strcspn(name, BLANKS)] = '\0';
	if (resolve_included(conf, file, name, path, sizeof(path)) < 0)
		return -1;
	return read_conf(conf, path, depth + 1) < 0 && errno != ENOENT ? -1 : 0;
}

/* Reads one line. Returns 0, or -1 with errno. */
static int parse_conf_line(struct conf *conf, const char *file, char *line, int depth)
{
	char value[PATH_MAX], *first; /* larger than GOJAIL_PATH_MAX: a long value is refused as a path */

	line[strcspn(line, "#")] = '\0';
	first = line + strspn(line, BLANKS);
	if (strncasecmp(first, "include", 7) == 0 && first[7] && strchr(BLANKS, first[7]))
		return read_included(conf, file, first + 7 + strspn(first + 7, BLANKS), depth);
	if (find_value(line, "ClusterName", conf->cluster, sizeof(conf->cluster)))
		for (char *letter = conf->cluster; *letter; letter++)
			*letter = (char)tolower((unsigned char)*letter);
	if (find_value(line, "PrologFlags", value, sizeof(value)))
		*conf->in_job = strcasestr(value, "RunInJob") != NULL;
	return find_value(line, "PlugStackConfig", value, sizeof(value)) ?
		       resolve_beside(file, value, conf->path, conf->size) :
		       0;
}

/* Reads a slurm.conf and the files that it includes; the last value counts. Returns 0, or -1 with errno. */
static int read_conf(struct conf *conf, const char *path, int depth)
{
	FILE *file = depth > INCLUDES_MAX ? NULL : fopen(path, "re");
	int rc = 0, why;
	char *line = NULL;
	size_t room = 0;

	if (!file) {
		if (depth > INCLUDES_MAX)
			errno = ELOOP;
		return -1;
	}
	while (rc == 0 && getline(&line, &room, file) >= 0)
		rc = parse_conf_line(conf, path, line, depth);
	why = errno;
	free(line);
	fclose(file);
	errno = why;
	return rc;
}

int find_plugstack(const char *slurm_conf, char *path, size_t size, bool *in_job)
{
	struct conf conf = {.path = path, .size = size, .in_job = in_job};

	return resolve_beside(slurm_conf, "plugstack.conf", path, size) < 0 ? -1 : read_conf(&conf, slurm_conf, 0);
}
