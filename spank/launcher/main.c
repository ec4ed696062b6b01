/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c: the single-threaded process between slurmstepd, which must not have Go's threads, and libgojail.so, which has
 * them. Its verbs are in include/gojail.h.
 */
#include "common/clock.h"
#include "common/fault.h"
#include "common/node.h"
#include "common/syscalls.h"
#include "launcher/inherited.h"
#include "launcher/library.h"
#include "launcher/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

static void write_reply(const char *format, const char *text) { dprintf(GOJAIL_REPLY_FD, format, text); }

/* Prepares the verb enter: no descriptor that a program of the jail could get, no file of the node's that it could
 * write. */
static int prepare_enter(char **argv, const struct node *node, struct fault *fault)
{
	if (syscall(SYS_close_range, GOJAIL_REPLY_FD + 1, ~0u, 0) < 0 || chdir("/") < 0)
		return fault_set(fault, "cannot close the caller's descriptors, or leave its directory: %s",
				 strerror(errno));
	return own_file_protect(argv, node->libdir, fault);
}

/* Prepares this process for its verb, and reads what is said about the node. */
static int prepare_process(char **argv, struct node *node, struct fault *fault)
{
	bool enter = verb_is_enter(argv[1]);

	if (node_find_program(node->libdir, sizeof(node->libdir)) < 0)
		return fault_set(fault, "cannot determine the path of gojail-launcher: %s", strerror(errno));
	*strrchr(node->libdir, '/') = '\0'; /* the library is in the same directory */
	/* The command of enter is its starter's own, and has that one's limits, cgroup and priority. */
	if ((enter ? prepare_enter(argv, node, fault) : inherited_reset(fault)) < 0)
		return -1;
	if (library_open(node->libdir, argv + 1) < 0)
		return fault_set(fault, "cannot prepare the call of libgojail.so: %s", strerror(errno));
	if (enter && *library_word("libdir"))
		snprintf(node->libdir, sizeof(node->libdir), "%s", library_word("libdir"));
	snprintf(node->state, sizeof(node->state), "%s",
		 *library_word("state") ? library_word("state") : GOJAIL_DEFAULT_STATE);
	snprintf(node->config, sizeof(node->config), "%s",
		 *library_word("config") ? library_word("config") : GOJAIL_DEFAULT_CONFIG);
	snprintf(node->name, sizeof(node->name), "%s", library_word("node"));
	return 0;
}

int main(int argc, char **argv)
{
	struct fault fault = {0};
	struct node node = {0};
	int64_t until;
	int deadline;

	if (argc < 2 || strchr(argv[1], '=') || argv[1][0] == '-') {
		fprintf(stderr, "usage: gojail-launcher "
				"site|template|sandbox|session|login|storage|enter|earlier|epilog|ended|clean|boot|"
				"logout [name=value]... [-- COMMAND...]\n"
				"It is started by the plugin and by gojail, not by people.\n");
		return 2;
	}
	if (fcntl(GOJAIL_REPLY_FD, F_GETFD) < 0)
		dup2(STDERR_FILENO, GOJAIL_REPLY_FD); /* started by hand */
	if (prepare_process(argv, &node, &fault) < 0) {
		write_reply("error %s\n", fault.text);
		return 1;
	}
	deadline = atoi(library_word("deadline"));
	until = clock_ms() + (deadline > 0 ? deadline : GOJAIL_DEFAULT_DEADLINE_MS);
	if (verb_run(argv[1], &node, until, &fault) < 0) {
		write_reply("%s", fault.silent ? "silent\n" : fault.request ? "request\n" : "");
		write_reply("error %s\n", fault.text);
		if (verb_is_detached(argv[1]))
			syslog(LOG_ERR, "gojail: %s", fault.text);
		return 1;
	}
	if (*verb_note(argv[1]))
		write_reply("note %s\n", verb_note(argv[1]));
	write_reply("ok\n", "");
	return 0;
}
