/* SPDX-License-Identifier: Apache-2.0 */
/* conf.c: finds the plugstack.conf that a slurm.conf names, and gojail's plugin in it, in the same way as slurmstepd
 * (_spank_stack_load in spank.c). */
#include "gojail.h"
#include "prolog/prolog.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"
#define PLUGSTACK_BLANKS " \t\n"
#define INCLUDES_MAX 8 /* nesting depth; Slurm has no limit, and does not start if a file includes itself */

/* The values that are read from slurm.conf. */
struct conf {
	char *path; /* of plugstack.conf */
	size_t size;
	char cluster[GOJAIL_PATH_MAX]; /* ClusterName in lower case; "" until its line is read */
	bool *in_job;
};

/* Parses one line of a file, without its comment. Returns 0, or -1 with errno. */
typedef int line_parser(void *result, const char *file, char *line, int depth);

/* Parses all lines of a file. Returns 0, or -1 with errno if it, or one that it includes, cannot be read. */
static int read_lines(const char *path, line_parser *parse, void *result, int depth)
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
	while (rc == 0 && getline(&line, &room, file) >= 0) {
		line[strcspn(line, "#")] = '\0';
		rc = parse(result, path, line, depth);
	}
	why = errno;
	free(line);
	fclose(file);
	errno = why;
	return rc;
}

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

static int parse_conf_line(void *result, const char *file, char *line, int depth);

/* Reads an included file. Ignores a missing one, which slurmd reports. Returns 0, or -1 with errno. */
static int read_included(struct conf *conf, const char *file, char *name, int depth)
{
	char path[GOJAIL_PATH_MAX];

	name[strcspn(name, BLANKS)] = '\0';
	if (resolve_included(conf, file, name, path, sizeof(path)) < 0)
		return -1;
	return read_lines(path, parse_conf_line, conf, depth + 1) < 0 && errno != ENOENT ? -1 : 0;
}

/* Parses one line of slurm.conf; the last value counts. Returns 0, or -1 with errno. */
static int parse_conf_line(void *result, const char *file, char *line, int depth)
{
	struct conf *conf = result;
	char value[PATH_MAX], *first; /* larger than GOJAIL_PATH_MAX: a long value is refused as a path */

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

int find_plugstack(const char *slurm_conf, char *path, size_t size, bool *in_job)
{
	struct conf conf = {.path = path, .size = size, .in_job = in_job};

	return resolve_beside(slurm_conf, "plugstack.conf", path, size) < 0 ?
		       -1 :
		       read_lines(slurm_conf, parse_conf_line, &conf, 0);
}

static void read_file(struct plugstack *stack, const char *path, int depth);

/* Stores a reason, unless there is one already. */
__attribute__((format(printf, 2, 3))) static void set_reason(struct plugstack *stack, const char *format, ...)
{
	va_list args;

	if (stack->reason[0])
		return;
	va_start(args, format);
	vsnprintf(stack->reason, sizeof(stack->reason), format, args);
	va_end(args);
}

/* Reads the files that match a pattern in file. */
static void read_matching(struct plugstack *stack, const char *file, const char *pattern, int depth)
{
	char whole[2 * GOJAIL_PATH_MAX];
	glob_t found;

	if (resolve_beside(file, pattern, whole, sizeof(whole)) < 0)
		set_reason(stack, "%s: the path \"%.200s...\" is too long", file, pattern);
	else if (glob(whole, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			read_file(stack, found.gl_pathv[i], depth + 1);
		globfree(&found);
	}
}

/* Reads a line "required PATH ARGUMENTS" or "optional PATH ARGUMENTS", and stores whether it loads the plugin, or why
 * not. */
static void read_plugin(struct plugstack *stack, const char *file, const char *path, const char *arguments,
			bool required)
{
	const char *slash = strrchr(path, '/');
	struct stat st;

	if (path[0] == '/' && stat(path, &st) == 0 && st.st_dev == stack->plugin.st_dev &&
	    st.st_ino == stack->plugin.st_ino) {
		if (required && !stack->required)
			snprintf(stack->arguments, sizeof(stack->arguments), "%s", arguments);
		stack->required |= required;
		if (!required)
			set_reason(stack,
				   "%s: %s is optional there: Slurm runs jobs without it where it cannot be loaded",
				   file, path);
	} else if (strcmp(slash ? slash + 1 : path, GOJAIL_PLUGIN) == 0) {
		set_reason(stack, "%s names another plugin, %s", file, path);
	}
}

static int parse_stack_line(void *result, const char *file, char *line, int depth)
{
	char *rest, *word = strtok_r(line, PLUGSTACK_BLANKS, &rest);
	char *path = word ? strtok_r(NULL, PLUGSTACK_BLANKS, &rest) : NULL;

	if (path && strcmp(word, "include") == 0)
		read_matching(result, file, path, depth);
	else if (path && (strcmp(word, "required") == 0 || strcmp(word, "optional") == 0))
		read_plugin(result, file, path, rest, word[0] == 'r');
	return 0;
}

static void read_file(struct plugstack *stack, const char *path, int depth)
{
	if (depth > INCLUDES_MAX)
		set_reason(stack, "%s: too many nested includes", path);
	else if (read_lines(path, parse_stack_line, stack, depth) < 0 && errno != ENOENT)
		set_reason(stack, "cannot read %s: %s", path, strerror(errno));
}

void plugstack_read(struct plugstack *stack, const char *path) { read_file(stack, path, 0); }
