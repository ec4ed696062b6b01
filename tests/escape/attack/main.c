// SPDX-License-Identifier: Apache-2.0

#include "attack.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Seconds that one attack may take, in the emulated guest of tests/vm as well.
enum { LIMIT = 120 };

static const char *current = "?";
static char findings[2000];

static void verdict(const char *word, const char *text)
{
	dprintf(STDOUT_FILENO, "%s %s %s\n", current, word, text);
	_exit(0);
}

void escaped(const char *format, ...)
{
	char text[1000];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	verdict("ESCAPED", text);
	abort();
}

void held(const char *format, ...)
{
	char text[1000];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	verdict("HELD", text);
	abort();
}

void held_errno(const char *what) { held("%s: %s", what, strerror(errno)); }

void found(const char *format, ...)
{
	size_t have = strlen(findings);
	if (have > sizeof findings - 200)
		return;
	if (have)
		have += snprintf(findings + have, sizeof findings - have, ", ");
	va_list args;
	va_start(args, format);
	vsnprintf(findings + have, 150, format, args);
	va_end(args);
}

void judge(const char *why)
{
	if (findings[0])
		verdict("ESCAPED", findings);
	verdict("HELD", why);
	abort();
}

static int run_one(const struct attack *attack)
{
	current = attack->name;
	pid_t pid = fork();
	if (pid == 0) {
		alarm(LIMIT);
		attack->run();
		held("the attack ended without a verdict"); // not reached
	}
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		printf("%s BROKEN %s\n", current, pid < 0 ? strerror(errno) : strsignal(WTERMSIG(status)));
	fflush(stdout);
	return 0;
}

// run_attacks runs those that are named, or all of them.
static int run_attacks(char **names)
{
	const struct attack *lists[] = {view_attacks, mount_attacks, kernel_attacks,
					job_attacks,  share_attacks, lent_attacks};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		for (const struct attack *a = lists[i]; a->name; a++) {
			bool wanted = !*names;
			for (char **name = names; *name; name++)
				wanted |= !strcmp(*name, a->name);
			if (wanted)
				run_one(a);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	if (!strcmp(verb, "run"))
		return run_attacks(argv + 2);
	if (!strcmp(verb, "victim") && argc == 3)
		return be_victim(argv[2]);
	if (!strcmp(verb, "daemon"))
		return be_daemon();
	if (!strcmp(verb, "bomb") && argc == 3)
		return be_bomb(atoi(argv[2]));
	if (!strcmp(verb, "fill") && argc == 4)
		return fill(argv[2], atoi(argv[3]));
	if (!strcmp(verb, "root"))
		return am_i_root();
	if (!strcmp(verb, "plant") && argc == 3)
		return copy_self(argv[2]);
	if (!strcmp(verb, "swap") && argc == 4)
		return swap_names(argv[2], argv[3]);
	if (!strcmp(verb, "with-key") && argc > 2)
		return with_key(argv + 2);
	if (!strcmp(verb, "without-landlock") && argc > 2)
		return without_landlock(argv + 2);
	fprintf(stderr, "usage: attack run [NAME...] | victim TAG | daemon | bomb N | fill DIRECTORY MB | root | plant "
			"PATH | swap ONE OTHER | with-key COMMAND | without-landlock COMMAND\n");
	return 2;
}
