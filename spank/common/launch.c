/* SPDX-License-Identifier: Apache-2.0 */
#include "common/launch.h"

#include "common/clock.h"
#include "common/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void launch_add_word(struct launch *launch, const char *format, ...)
{
	va_list args;
	char *word = NULL;

	va_start(args, format);
	if (launch->argc >= LAUNCH_WORDS_MAX || vasprintf(&word, format, args) < 0)
		launch->overflow = 1;
	else
		launch->argv[launch->argc++] = word;
	va_end(args);
	launch->argv[launch->argc] = NULL;
}

/* Returns the component that somebody other than root could replace, or NULL. A missing one is reported when it is
 * started. */
static const char *find_untrusted(const struct node *node)
{
	static const char *const parts[] = {GOJAIL_LAUNCHER, GOJAIL_LIBRARY};
	char path[GOJAIL_PATH_MAX + 32];
	struct stat st;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", node->libdir, parts[i]);
		if (stat(path, &st) == 0 && (st.st_uid != 0 || (st.st_mode & 022)))
			return parts[i];
	}
	return NULL;
}

/* Returns the deadline of the launcher: earlier than the caller's, so that its reason arrives in time. */
static int find_deadline(int64_t until)
{
	int left = clock_left(until);

	return left > 2000 ? left - 250 : left * 7 / 8;
}

void launch_prepare(struct launch *launch, const struct node *node, const char *verb, int64_t until)
{
	*launch = (struct launch){.untrusted = find_untrusted(node)};
	launch_add_word(launch, "%s/" GOJAIL_LAUNCHER, node->libdir);
	launch_add_word(launch, "%s", verb);
	launch_add_word(launch, "state=%s", node->state);
	launch_add_word(launch, "config=%s", node->config);
	launch_add_word(launch, "node=%s", node->name);
	launch_add_word(launch, "deadline=%d", find_deadline(until));
}

static void launch_free(struct launch *launch)
{
	for (int i = 0; i < launch->argc; i++)
		free(launch->argv[i]);
	launch->argc = 0;
}

/*
 * Starts the launcher by posix_spawn(3), not fork(2): slurmstepd has threads and, at times, much memory. The child
 * gets a clean signal state, no descriptor but reply, no environment but a PATH, and a session of its own; it resets
 * all else that it inherits itself (launcher/inherited.h). Returns 0 or an errno.
 */
static int spawn_launcher(struct launch *launch, int reply, pid_t *pid)
{
	static char *environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int error;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&files, 0, 1);
	posix_spawn_file_actions_adddup2(&files, 0, 2);
	if (reply >= 0)
		posix_spawn_file_actions_adddup2(&files, reply, GOJAIL_REPLY_FD);
	else
		posix_spawn_file_actions_adddup2(&files, 0, GOJAIL_REPLY_FD);
	posix_spawn_file_actions_addclosefrom_np(&files, GOJAIL_REPLY_FD + 1);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
	error = posix_spawn(pid, launch->argv[0], &files, &attributes, launch->argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return error;
}

/*
 * Reads lines until "ok", which returns 0, or "error" or the end, which return -1 with a fault. "pid N START" goes into
 * detached, "note TEXT" into the launch.
 */
static int await_reply(int reply, int64_t until, struct launch *launch, struct record *detached, struct fault *fault)
{
	char text[GOJAIL_TEXT_MAX + 16] = "", *line, *end;
	struct fault answer = {0};
	size_t have = 0;

	for (;;) {
		ssize_t got;

		if (!clock_await(reply, until))
			return fault_set_silent(fault, "gojail-launcher did not answer before the deadline; "
						       "the storage of the jail may hang, or a link of its network be "
						       "slow: ask your administrator");
		got = read(reply, text + have, sizeof(text) - 1 - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return fault_set(fault, "gojail-launcher ended without an answer; "
						"ask your administrator to look at the node");
		have += (size_t)got;
		text[have] = '\0';
		for (line = text; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			if (strcmp(line, "ok") == 0)
				return 0;
			answer.silent = answer.silent || strcmp(line, "silent") == 0;
			answer.request = answer.request || strcmp(line, "request") == 0;
			if (strncmp(line, "error ", 6) == 0) {
				fault_set(&answer, "%s", line + 6);
				return fault_add(fault, &answer);
			}
			(void)sscanf(line, "pid %d %" SCNu64, &detached->pid, &detached->start);
			if (strncmp(line, "note ", 5) == 0)
				snprintf(launch->note, sizeof(launch->note), "%s", line + 5);
		}
		have = strlen(line);
		memmove(text, line, have + 1);
		if (have + 1 >= sizeof(text))
			return fault_set(fault, "gojail-launcher gave an answer that is too long");
	}
}

/*
 * Reaps the child, and waits for that at most a second: a process that is killed and still exists hangs in the kernel,
 * and slurmstepd must not hang with it.
 */
static void reap_launcher(pid_t pid)
{
	for (int64_t until = clock_ms() + 1000; clock_left(until) > 0; clock_pause_ms(1))
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
}

int launch_run(struct launch *launch, const struct node *node, int64_t until, struct fault *fault)
{
	struct record detached = {0};
	pid_t child = -1;
	int pipefd[2], error, result = -1;

	if (launch->untrusted) {
		launch_free(launch);
		return fault_set(fault,
				 "%s/%s can be changed by others than root; ask your administrator to run: chown root "
				 "%s/%s; chmod go-w %s/%s",
				 node->libdir, launch->untrusted, node->libdir, launch->untrusted, node->libdir,
				 launch->untrusted);
	}
	if (launch->overflow || pipe2(pipefd, O_CLOEXEC) < 0) {
		launch_free(launch);
		return fault_set(fault, "cannot prepare gojail-launcher: %s",
				 launch->overflow ? "its command line is too long" : strerror(errno));
	}
	error = spawn_launcher(launch, pipefd[1], &child);
	close(pipefd[1]);
	if (error) {
		fault_set(fault,
			  "cannot start %s/" GOJAIL_LAUNCHER ": %s; ask your administrator to "
			  "install gojail again on this node",
			  node->libdir, strerror(error));
	} else {
		result = await_reply(pipefd[0], until, launch, &detached, fault);
		if (result < 0) {
			kill(child, SIGKILL);
			record_kill(&detached, 0);
		}
		reap_launcher(child);
	}
	close(pipefd[0]);
	launch_free(launch);
	return result;
}

int launch_detached(struct launch *launch)
{
	int result = -1;
	pid_t child;

	/* A detached verb forks at once, and its first process ends. */
	if (!launch->overflow && !launch->untrusted && spawn_launcher(launch, -1, &child) == 0) {
		reap_launcher(child);
		result = 0;
	}
	launch_free(launch);
	return result;
}

void clean_start(const struct node *node, const char *job, const char *scratch)
{
	struct launch launch;

	launch_prepare(&launch, node, "clean", clock_ms() + CLEAN_MS);
	launch_add_word(&launch, "job=%s", job);
	if (scratch[0])
		launch_add_word(&launch, "scratch=%s", scratch);
	launch_detached(&launch);
}

int earlier_end(const struct node *node, const char *job, uid_t uid, int64_t begun, int64_t until, struct fault *fault)
{
	struct launch launch;

	launch_prepare(&launch, node, "earlier", until);
	launch_add_word(&launch, "job=%s", job);
	launch_add_word(&launch, "uid=%u", (unsigned)uid);
	if (begun)
		launch_add_word(&launch, "begun=%" PRId64, begun);
	if (launch_run(&launch, node, until, fault) < 0)
		return -1;
	clean_start(node, job, "");
	return 0;
}
