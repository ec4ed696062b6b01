/* SPDX-License-Identifier: Apache-2.0 */
#include "common/execution.h"

#include "common/clock.h"

#include <signal.h>
#include <unistd.h>

int execution_await(int report, pid_t child, int64_t until, const char *late, struct fault *fault)
{
	char text[GOJAIL_TEXT_MAX];
	ssize_t length;

	if (!clock_await(report, until)) {
		kill(child, SIGKILL);
		return fault_set(fault, "%s", late);
	}
	length = read(report, text, sizeof(text) - 1);
	return length == 0 ? 0 : fault_set(fault, "%.*s", (int)(length > 0 ? length : 0), text);
}
