/* SPDX-License-Identifier: Apache-2.0 */
#include "session/account.h"

#include "common/fd.h"
#include "common/syscalls.h"
#include "common/variables.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FIRST_FD 3 /* above the caller's */

/* What the child sends: in one piece (pipe(7)). */
struct answer {
	uid_t uid; /* of the account that was found */
	struct account account;
	char error[256]; /* why there is none; "" otherwise */
};

_Static_assert(sizeof(struct answer) <= PIPE_BUF, "an answer is larger than PIPE_BUF");

/* Copies a text of the name service. Returns 0, or -1 if it is too long. */
static int copy_text(char *to, size_t size, const char *from)
{
	return snprintf(to, size, "%s", from ? from : "") < (int)size ? 0 : -1;
}

/* Asks the name service. */
static void look_up(struct answer *answer, uid_t uid)
{
	static char text[65536];
	struct passwd entry, *found = NULL;
	int error = getpwuid_r(uid, &entry, text, sizeof(text), &found);
	struct account *account = &answer->account;

	if (!found) {
		snprintf(answer->error, sizeof(answer->error), "%s",
			 error ? strerror(error) : "there is no such account");
		return;
	}
	answer->uid = found->pw_uid;
	if (copy_text(account->name, sizeof(account->name), found->pw_name) < 0 ||
	    copy_text(account->home, sizeof(account->home), found->pw_dir) < 0 ||
	    copy_text(account->shell, sizeof(account->shell), found->pw_shell) < 0)
		snprintf(answer->error, sizeof(answer->error), "its name, home directory or shell is too long");
}

/* Answers from a child that is the caller, with no descriptor of root's. */
__attribute__((noreturn)) static void answer_as_caller(const struct caller *caller, int to)
{
	static struct answer answer; /* with no rest of the stack in it */
	struct fault fault = {0};

	if (dup2(to, FIRST_FD) < 0 || syscall(SYS_close_range, FIRST_FD + 1, ~0u, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fault_set(&fault, "%s", strerror(errno));
	if (fault.text[0] || caller_become_ids(caller, &fault) < 0)
		snprintf(answer.error, sizeof(answer.error), "%.200s", fault.text);
	else
		look_up(&answer, caller->uid);
	_exit(write(FIRST_FD, &answer, sizeof(answer)) != sizeof(answer));
}

/* Receives the child's answer, and ends the child. Returns 0 or -1. */
static int receive_answer(struct answer *answer, int from, pid_t child)
{
	ssize_t got;

	do
		got = read(from, answer, sizeof(*answer)); /* the deadline ends a child that hangs, and this process */
	while (got < 0 && errno == EINTR);
	caller_end_child(child);
	return got == sizeof(*answer) ? 0 : -1;
}

/* Reports whether a text ends within its size, and has no control character. */
static bool is_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 127)
			return false;
	return length < size;
}

/* Returns why an answer cannot be right, or NULL: it comes from a process of the user's. */
static const char *check_answer(const struct answer *answer, uid_t uid)
{
	const struct account *account = &answer->account;

	if (!is_text(answer->error, sizeof(answer->error)))
		return "the answer is damaged";
	if (answer->error[0])
		return answer->error;
	if (answer->uid != uid)
		return "the name service returned the account of another uid";
	if (!account->name[0] || !is_text(account->name, sizeof(account->name)) ||
	    !is_text(account->home, sizeof(account->home)) || !is_text(account->shell, sizeof(account->shell)))
		return "its name, home directory or shell has a control character, or it has no name";
	return NULL;
}

int account_read(struct account *account, const struct caller *caller, const struct session_rules *rules,
		 struct fault *fault)
{
	static struct answer answer;
	const char *why = "the lookup was ended";
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(fault, "cannot look up the account of user %u: %s", (unsigned)caller->uid,
				 strerror(errno));
	scoped_fd from = ends[0];
	scoped_fd to = ends[1];
	child = caller_fork();
	if (child < 0)
		return fault_set(
			fault,
			"cannot start the session: cannot create a process: %s; end other processes of yours, or "
			"ask your administrator",
			strerror(errno));
	if (child == 0)
		answer_as_caller(caller, to);
	close_fd(&to);
	if (receive_answer(&answer, from, child) == 0)
		why = check_answer(&answer, caller->uid);
	if (why)
		return fault_set(fault,
				 "cannot find the account of user %u on this node: %s; ask your administrator to run: "
				 "getent passwd %u",
				 (unsigned)caller->uid, why, (unsigned)caller->uid);
	*account = answer.account;
	snprintf(account->home, sizeof(account->home), "%s", login_home(answer.account.home));
	snprintf(account->shell, sizeof(account->shell), "%s", login_shell(answer.account.shell, rules));
	return 0;
}

bool account_is_exempt(uid_t uid, gid_t gid, const struct session_rules *rules)
{
	static gid_t groups[65536];
	int count = getgroups(sizeof(groups) / sizeof(groups[0]), groups);
	char *end;

	if (uid == 0)
		return true;
	for (const char *at = rules->exempt; at[0] && at[0] != '-'; at = *end ? end + 1 : end) {
		gid_t exempt = (gid_t)strtoul(at, &end, 10);

		if (exempt == gid)
			return true;
		for (int i = 0; i < count; i++)
			if (groups[i] == exempt)
				return true;
	}
	return false;
}
