/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/library.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/launch.h"
#include "common/syscalls.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *libdir;
static char **command;           /* what follows the words */
static struct gojail_call *call; /* shared with the children that load the library */

int library_open(const char *directory, char **words)
{
	libdir = directory;
	call = mmap(NULL, sizeof(*call), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (call == MAP_FAILED)
		return -1;
	for (call->argv = words; words[call->argc] && strcmp(words[call->argc], "--");)
		call->argc++;
	command = words + call->argc;
	if (*command)
		*command++ = NULL;
	return 0;
}

const char *library_word(const char *name)
{
	size_t length = strlen(name);

	for (int i = 1; i < call->argc; i++)
		if (strncmp(call->argv[i], name, length) == 0 && call->argv[i][length] == '=')
			return call->argv[i] + length + 1;
	return "";
}

const char *library_answer(void) { return call->text; }

char **library_command(void) { return command; }

void library_replace_word(char *word)
{
	size_t length = strcspn(word, "=") + 1;

	for (int i = 1; i < call->argc; i++)
		if (strncmp(call->argv[i], word, length) == 0)
			call->argv[i] = word;
}

int library_add_word(const char *name, int value, struct fault *fault)
{
	static char words[3][32];
	static char *argv[LAUNCH_WORDS_MAX + 4];
	static int added;

	char word[sizeof(words[0])];

	snprintf(word, sizeof(word), "%s=%d", name, value);
	for (int i = 0; i < added; i++) {
		if (strncmp(words[i], word, strlen(name) + 1) == 0) { /* the sandbox is built once more */
			memcpy(words[i], word, sizeof(word));
			return 0;
		}
	}
	if (added == 3 || call->argc > LAUNCH_WORDS_MAX + added)
		return fault_set(fault, "sandbox: more than %d words", LAUNCH_WORDS_MAX);
	for (int i = 0; call->argv != argv && i < call->argc; i++)
		argv[i] = call->argv[i];
	memcpy(words[added], word, sizeof(word));
	argv[call->argc++] = words[added++];
	call->argv = argv;
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
	call->argv[0] = (char *)(uintptr_t)verb;
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
