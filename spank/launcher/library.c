/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/library.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/job.h"
#include "common/launch.h"
#include "common/syscalls.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX (LAUNCH_WORDS_MAX + 16)

static const char *libdir;
static char *words[WORDS_MAX];
static char **command;           /* what follows the words */
static struct gojail_call *call; /* shared with the children that load the library */

int library_open(const char *directory, char **given)
{
	int count = 0;

	libdir = directory;
	call = mmap(NULL, sizeof(*call), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (call == MAP_FAILED)
		return -1;
	for (; given[count] && strcmp(given[count], "--"); count++) {
		errno = E2BIG;
		if (count == WORDS_MAX)
			return -1;
		words[count] = given[count];
	}
	call->argv = words;
	call->argc = count;
	command = given + count + (given[count] ? 1 : 0);
	return 0;
}

/* Returns the number of the word with that name, or that of the next word to come. */
static int find_word(const char *name, size_t length)
{
	int i = 1;

	while (i < call->argc && (strncmp(words[i], name, length) || words[i][length] != '='))
		i++;
	return i;
}

const char *library_word(const char *name)
{
	int i = find_word(name, strlen(name));

	return i < call->argc ? words[i] + strlen(name) + 1 : "";
}

const char *library_answer(void) { return call->text; }

char **library_command(void) { return command; }

int library_set_word(struct fault *fault, const char *format, ...)
{
	int i = find_word(format, strcspn(format, "=")), length;
	char *word;
	va_list args;

	if (i == WORDS_MAX)
		return fault_set(fault, "gojail-launcher has more than %d words", WORDS_MAX);
	va_start(args, format);
	length = vasprintf(&word, format, args);
	va_end(args);
	if (length < 0)
		return fault_set(fault, "gojail-launcher cannot call libgojail.so: %s", strerror(ENOMEM));
	words[i] = word;
	call->argc += i == call->argc;
	return 0;
}

/* Loads the library and makes the one call. Returns 0, or -1 with call->text. */
static int load_and_call(const char *verb)
{
	char path[GOJAIL_PATH_MAX + 16];
	int (*gojail_call)(struct gojail_call *);
	void *library;

	snprintf(path, sizeof(path), "%s/" GOJAIL_LIBRARY, libdir);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	*(void **)&gojail_call = library ? dlsym(library, GOJAIL_CALL_SYMBOL) : NULL;
	if (!gojail_call) {
		snprintf(call->text, sizeof(call->text),
			 "cannot load libgojail.so: %.800s; "
			 "install gojail again on this node",
			 dlerror());
		return -1;
	}
	words[0] = (char *)(uintptr_t)verb;
	call->version = GOJAIL_VERSION;
	call->request = 0;
	return gojail_call(call);
}

/* Sets the fault that the library reported. Returns -1. */
static int fault_of_call(struct fault *fault)
{
	return call->request ? fault_set_request(fault, "%s", call->text) : fault_set(fault, "%s", call->text);
}

const struct gojail_call *library_call(const char *verb, struct fault *fault)
{
	call->ntrees = 0;
	if (load_and_call(verb) == 0)
		return call;
	fault_of_call(fault);
	return NULL;
}

int library_add_trees(const char *verb, struct gojail_tree *trees, uint32_t *count, uint32_t flags, struct fault *fault)
{
	const struct gojail_call *answer = library_call(verb, fault);

	for (uint32_t i = 0; answer && i < answer->ntrees && i < GOJAIL_TREES_MAX; i++)
		if (add_tree(trees, count, answer->trees[i].fd, answer->trees[i].destination,
			     answer->trees[i].flags | flags, fault) < 0)
			return -1;
	return answer ? 0 : -1;
}

/* Sets a fault for a library that was killed at the deadline. A lock that another process holds is reported by Go
 * before that. */
static int fault_late(const char *verb, struct fault *fault)
{
	if (strcmp(verb, "allocated") == 0)
		return fault_set(fault,
				 "asking Slurm whether job %s has this node took longer than the deadline; try again",
				 library_word("job"));
	if (library_word("jail")[0])
		return fault_set_silent(fault,
					"preparing jail \"%s\" took longer than the deadline; does its storage answer? "
					"Its root is %s. See: gojail check",
					library_word("jail"), library_word("source"));
	if (strcmp(verb, "site") == 0)
		return fault_set(fault,
				 "compiling %s took longer than the deadline; do its storage and the name service "
				 "answer? See: gojail check",
				 library_word("config"));
	return fault_set(fault,
			 "removing what jobs left on this node took longer than the deadline; run: gojail sweep");
}

int library_call_in_child(const char *verb, int64_t until, struct fault *fault)
{
	int status;
	pid_t child;

	call->text[0] = '\0';
	call->request = 0;
	child = fork();
	if (child < 0)
		return fault_set(fault, "cannot fork: %s", strerror(errno));
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The reply is this process's to give; Go must not keep the pipe open. */
		close(GOJAIL_REPLY_FD);
		_exit(load_and_call(verb) == 0 ? 0 : 1);
	}
	scoped_fd pidfd = k_pidfd_open(child);
	if (!clock_await(pidfd, until)) {
		kill(child, SIGKILL);
		return fault_late(verb, fault);
	}
	if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	call->text[sizeof(call->text) - 1] = '\0';
	if (call->text[0])
		return fault_of_call(fault);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return fault_set(fault, "%s/libgojail.so was killed; was the node out of memory? Try again", libdir);
	if (WIFSIGNALED(status))
		return fault_set(fault, "%s/libgojail.so died of signal %d (%s); install gojail again on this node",
				 libdir, WTERMSIG(status), strsignal(WTERMSIG(status)));
	return fault_set(fault, "%s/libgojail.so failed without a message", libdir);
}
