/* SPDX-License-Identifier: Apache-2.0 */
#include "session/place.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/record.h"
#include "gojail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reports whether uid 0 of this process is uid 0 of the node: only the node's root can map all ids
 * (user_namespaces(7)). */
static bool is_real_root(int proc)
{
	unsigned long inside, outside, count;
	char map[256];

	return read_file(proc, "self/uid_map", map, sizeof(map)) > 0 &&
	       sscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 &&
	       count == 4294967295ul;
}

/*
 * Reports whether this process has the mount namespace of process 1, and process 1 is not the holder of a sandbox,
 * which has another name of gojail's until it has heard that its record is written.
 */
static bool has_node_mounts(int proc)
{
	struct stat own, first;
	char name[32];

	return fstatat(proc, "self/ns/mnt", &own, 0) == 0 && fstatat(proc, "1/ns/mnt", &first, 0) == 0 &&
	       is_same_file(&own, &first) && read_file(proc, "1/comm", name, sizeof(name)) > 0 &&
	       strncmp(name, "gojail-", strlen("gojail-"));
}

int place_check(struct fault *fault)
{
	if (geteuid() != 0)
		return fault_set(fault, GOJAIL_SESSION
				 " does not run as root; ask your administrator: it must be set-user-ID root, "
				 "on a file system without nosuid");
	scoped_fd proc = open_node_proc(fault);
	if (proc < 0)
		return -1;
	if (!is_real_root(proc))
		return fault_set(fault, GOJAIL_SESSION " runs in a user namespace; run it on the node itself");
	if (!has_node_mounts(proc))
		return fault_set(
			fault, GOJAIL_SESSION
			" runs in another mount namespace than the node's process 1; run it on the node itself, and "
			"ask your "
			"administrator about pam_namespace, and about join_container=false of pam_slurm_adopt");
	return 0;
}

/* Reports whether only root can replace the file at a path: root owns it and all directories above, and nobody else may
 * write to them. */
static bool only_root_can_replace(const char *path)
{
	char part[GOJAIL_PATH_MAX];
	struct stat st;

	for (const char *end = path; end; end = end[1] ? strchrnul(end + 1, '/') : NULL) {
		snprintf(part, sizeof(part), "%.*s", end == path ? 1 : (int)(end - path), path);
		if (lstat(part, &st) < 0 || st.st_uid != 0 || (st.st_mode & 022) || S_ISLNK(st.st_mode))
			return false;
		if (!*end)
			return S_ISREG(st.st_mode) &&
			       st.st_nlink == 1; /* through a hard link, the file could be found in another directory */
	}
	return false;
}

/* Finds the directory of this program by /proc/self/exe: the caller chose argv[0]. Returns 0, or -1 with a fault. */
static int find_libdir(struct node *node, struct fault *fault)
{
	if (node_find_program(node->libdir, sizeof(node->libdir)) < 0)
		return fault_set(fault, "cannot determine the path of " GOJAIL_SESSION ": %s", strerror(errno));
	if (!only_root_can_replace(node->libdir))
		return fault_set(fault,
				 "%s, or a directory above it, can be changed by others than root; ask your "
				 "administrator to run: gojail check",
				 node->libdir);
	*strrchr(node->libdir, '/') = '\0';
	return 0;
}

/* Parses a line of the file: adds it to the words for node_find, or sets the node's name. Returns 0, or -1 with a
 * fault. */
static int parse_line(struct node *node, char *line, char **words, int *count, struct fault *fault)
{
	if (line[0] == '#' || !line[0])
		return 0;
	if (strncmp(line, "node=", 5) == 0 && line[5] && line[5] != '.' && !strchr(line + 5, '/'))
		snprintf(node->name, sizeof(node->name), "%s", line + 5);
	else if ((strncmp(line, "config=", 7) == 0 || strncmp(line, "state=", 6) == 0) && *count < 2)
		words[(*count)++] = line;
	else
		return fault_set(fault,
				 GOJAIL_SESSION_CONFIG
				 ": unknown line \"%s\"; known are config=FILE, state=DIR and node=NAME",
				 line);
	return 0;
}

int place_find(struct node *node, struct fault *fault)
{
	char text[4096] = "", *rest = NULL, *words[2];
	struct stat st;
	int count = 0;

	if (find_libdir(node, fault) < 0)
		return -1;
	if (lstat(GOJAIL_SESSION_CONFIG, &st) == 0) {
		if (!only_root_can_replace(GOJAIL_SESSION_CONFIG) ||
		    read_file(AT_FDCWD, GOJAIL_SESSION_CONFIG, text, sizeof(text)) < 0)
			return fault_set(fault,
					 GOJAIL_SESSION_CONFIG " is not a file that only root can change, or cannot be "
							       "read; ask your administrator to run: gojail check");
	} else if (errno != ENOENT) {
		return fault_set(fault, GOJAIL_SESSION_CONFIG ": %s; ask your administrator", strerror(errno));
	}
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (parse_line(node, line, words, &count, fault) < 0)
			return -1;
	if (!node->name[0] && gethostname(node->name, sizeof(node->name) - 1) == 0)
		node->name[strcspn(node->name, ".")] = '\0';
	if (!node->name[0])
		return fault_set(
			fault,
			"the node has no name; ask your administrator to write node=NAME to " GOJAIL_SESSION_CONFIG);
	return node_find(node, count, words, fault) < 0 ? -1 : node_check_state(node, fault);
}

/* Reports whether a process, given its /proc directory, executes one of the two programs. */
static bool executes_su(int process)
{
	static const char *const names[] = {"su", "runuser"};
	char path[GOJAIL_PATH_MAX];
	ssize_t length = readlinkat(process, "exe", path, sizeof(path) - 1);
	const char *slash;

	path[length < 0 ? 0 : length] = '\0';
	slash = strrchr(path, '/');
	for (size_t i = 0; slash && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(slash + 1, names[i]) == 0)
			return true;
	return false;
}

bool starter_is_root(char *const *argv)
{
	pid_t parent = getppid();
	char path[32];

	if (!argv[0] || !argv[1] || strcmp(argv[1], "-c") || !argv[2])
		return false;
	snprintf(path, sizeof(path), "/proc/%d", (int)parent);
	scoped_fd process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* The directory is the parent's if the parent is still the same afterwards. */
	return process >= 0 && record_is_of_root(process) && executes_su(process) && getppid() == parent;
}
