/* SPDX-License-Identifier: Apache-2.0 */
/* plugstack.c: reads plugstack.conf in the same way as slurmstepd (_spank_stack_load in spank.c), to find gojail's
 * plugin. */
#include "prolog/prolog.h"

#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BLANKS " \t\n"
#define LINE_MAX_OF_SLURM 4096 /* Slurm reads a longer line as two lines */
#define INCLUDES_MAX 8         /* nesting depth; Slurm has no limit, and does not start if a file includes itself */

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

/* Reads the files that match a pattern in file. A relative pattern is relative to the directory of file. */
static void read_include(struct plugstack *stack, const char *file, const char *pattern, int depth)
{
	const char *slash = strrchr(file, '/');
	char whole[2 * GOJAIL_PATH_MAX];
	int dir = pattern[0] == '/' || !slash ? 0 : (int)(slash - file + 1);
	glob_t found;

	if (snprintf(whole, sizeof(whole), "%.*s%s", dir, file, pattern) >= (int)sizeof(whole)) {
		set_reason(stack, "%s: the path \"%.200s...\" is too long", file, pattern);
		return;
	}
	if (glob(whole, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		read_file(stack, found.gl_pathv[i], depth + 1);
	globfree(&found);
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

static void parse_stack_line(struct plugstack *stack, const char *file, char *line, int depth)
{
	char *rest, *word, *path;

	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, BLANKS, &rest);
	path = word ? strtok_r(NULL, BLANKS, &rest) : NULL;
	if (!path)
		return;
	if (strcmp(word, "include") == 0)
		read_include(stack, file, path, depth);
	else if (strcmp(word, "required") == 0 || strcmp(word, "optional") == 0)
		read_plugin(stack, file, path, rest, word[0] == 'r');
}

static void read_file(struct plugstack *stack, const char *path, int depth)
{
	char line[LINE_MAX_OF_SLURM];
	FILE *file;

	if (depth > INCLUDES_MAX) {
		set_reason(stack, "%s: too many nested includes", path);
		return;
	}
	file = fopen(path, "re");
	if (!file) {
		if (errno != ENOENT)
			set_reason(stack, "cannot read %s: %s", path, strerror(errno));
		return;
	}
	while (fgets(line, sizeof(line), file))
		parse_stack_line(stack, path, line, depth);
	fclose(file);
}

void plugstack_read(struct plugstack *stack, const char *path) { read_file(stack, path, 0); }
