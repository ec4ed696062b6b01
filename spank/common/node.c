/* SPDX-License-Identifier: Apache-2.0 */
#include "common/node.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copies a path, with the node's name in place of %n. Returns 0, or -1 if it is too long or not absolute. */
static int expand_name(const struct node *node, char *to, size_t size, const char *from)
{
	size_t used = 0;

	for (; *from && used < size - 1; from++) {
		if (from[0] == '%' && from[1] == 'n') {
			used += (size_t)snprintf(to + used, size - used, "%s", node->name);
			from++;
		} else {
			to[used++] = *from;
		}
	}
	if (used >= size - 1)
		return -1;
	to[used] = '\0';
	return to[0] == '/' ? 0 : -1;
}

/* Finds the node's name: slurmd has it from -N, its children from a variable. */
static void find_name(struct node *node)
{
	const char *name = getenv("SLURMD_NODENAME");
	char line[4096];
	ssize_t got;

	if (node->name[0])
		return;
	if (name) {
		snprintf(node->name, sizeof(node->name), "%s", name);
		return;
	}
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && (got = read(fd, line, sizeof(line) - 1)) > 0) {
		line[got] = '\0';
		for (char *word = line; word < line + got; word += strlen(word) + 1)
			if (strncmp(word, "-N", 2) == 0)
				snprintf(node->name, sizeof(node->name), "%s",
					 word[2]               ? word + 2 :
					 word + 3 < line + got ? word + 3 :
								 "");
	}
	if (fd >= 0)
		close(fd);
	if (!node->name[0] && gethostname(node->name, sizeof(node->name) - 1) == 0)
		node->name[strcspn(node->name, ".")] = '\0';
}

int node_find_program(char *path, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", path, size);

	if (length < 0 || (size_t)length >= size) {
		errno = length < 0 ? errno : ENAMETOOLONG;
		return -1;
	}
	path[length] = '\0';
	errno = ENOENT;
	return strchr(path, '/') ? 0 : -1;
}

int node_find(struct node *node, int argc, char **argv, struct fault *fault)
{
	const char *config = GOJAIL_DEFAULT_CONFIG, *state = GOJAIL_DEFAULT_STATE;
	Dl_info self;
	char *slash;

	find_name(node);
	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "config=", 7) == 0)
			config = argv[i] + 7;
		else if (strncmp(argv[i], "state=", 6) == 0)
			state = argv[i] + 6;
		else
			return fault_set(fault,
					 "plugstack.conf: unknown argument \"%s\"; known are "
					 "config=FILE and state=DIR",
					 argv[i]);
	}
	if (!node->libdir[0]) {
		if (!dladdr((void *)(uintptr_t)&node_find, &self) || self.dli_fname[0] != '/')
			return fault_set(fault, "plugstack.conf must name " GOJAIL_PLUGIN " by its full path");
		snprintf(node->libdir, sizeof(node->libdir), "%s", self.dli_fname);
		slash = strrchr(node->libdir, '/');
		*slash = '\0';
	}
	if (expand_name(node, node->config, sizeof(node->config), config) < 0 ||
	    expand_name(node, node->state, sizeof(node->state), state) < 0)
		return fault_set(fault, "plugstack.conf: config= and state= must be full paths");
	return 0;
}

/* The state directory is missing after a reboot, as it is in memory. */
int node_check_state(const struct node *node, struct fault *fault)
{
	char parent[GOJAIL_PATH_MAX];
	struct stat st;

	if (!node->state[0])
		return fault_set(fault, NODE_UNASKED);
	if (lstat(node->state, &st) < 0) {
		snprintf(parent, sizeof(parent), "%s", node->state);
		*strrchr(parent, '/') = '\0';
		if (parent[0])
			mkdir(parent, 0755); /* state=/run/gojail/%n */
		mkdir(node->state, 0700);
		if (lstat(node->state, &st) < 0)
			return fault_set(fault, "cannot create the state directory %s: %m; ask your administrator",
					 node->state);
	}
	if (!S_ISDIR(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022))
		return fault_set(fault,
				 "the state directory %s can be changed by others than root; ask your administrator to "
				 "run: gojail check",
				 node->state);
	return 0;
}
