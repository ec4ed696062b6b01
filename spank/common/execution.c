/* SPDX-License-Identifier: Apache-2.0 */
#include "common/execution.h"

#include "common/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

int execution_await(int report, pid_t child, int64_t until, const char *late, struct fault *fault)
{
	struct pollfd wait = {.fd = report, .events = POLLIN};
	char text[GOJAIL_TEXT_MAX];
	ssize_t length;
	int ready;

	do
		ready = poll(&wait, 1, clock_left(until));
	while (ready < 0 && errno == EINTR);
	if (ready <= 0) {
		kill(child, SIGKILL);
		return fault_set(fault, "%s", late);
	}
	length = read(report, text, sizeof(text) - 1);
	return length == 0 ? 0 : fault_set(fault, "%.*s", (int)(length > 0 ? length : 0), text);
}
