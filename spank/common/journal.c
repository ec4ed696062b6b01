/* SPDX-License-Identifier: Apache-2.0 */
#include "common/journal.h"

#include "common/fault.h"
#include "common/fd.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DAEMON (3 << 3) /* LOG_DAEMON */

/* Where journald listens, and where any syslog daemon does. */
static const char *const sockets[] = {"/run/systemd/journal/dev-log", "/dev/log"};

static void send_line(const char *line, int length)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	scoped_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (unsigned i = 0; fd >= 0 && i < sizeof(sockets) / sizeof(sockets[0]); i++) {
		snprintf(to.sun_path, sizeof(to.sun_path), "%s", sockets[i]);
		if (sendto(fd, line, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof(to)) >=
		    0)
			return;
	}
}

void journal_write(int priority, const char *format, ...)
{
	char line[2048];
	int begin = snprintf(line, sizeof(line), "<%d>gojail[%d]: ", DAEMON | priority, (int)getpid());
	va_list args;

	va_start(args, format);
	vsnprintf(line + begin, sizeof(line) - (size_t)begin, format, args);
	va_end(args);
	make_printable(line + begin);
	send_line(line, (int)strlen(line));
}

const char *journal_quote(char *to, unsigned long size, const char *text)
{
	snprintf(to, size, "%s", text);
	for (char *at = to; (at = strchr(at, '"')); at++)
		*at = '\'';
	return to;
}

void journal_ended(const char *what, const char *more, const char *why)
{
	char quoted[1024];

	if (why[0])
		journal_write(JOURNAL_ERROR, "%s%s error=\"%s\"", what, more,
			      journal_quote(quoted, sizeof(quoted), why));
	else
		journal_write(JOURNAL_INFO, "%s%s", what, more);
}
