// SPDX-License-Identifier: Apache-2.0
//
// Asks a zygote: one that is stuck, or replies garbage, or whose holder replies once, and then ends or hangs. Prints
// the result, whether the storage counts as silent, and the fault.

#include "common/clock.h"
#include "common/zygote_client.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct gojail_request request = {.version = GOJAIL_VERSION};
	struct gojail_reply reply = {.version = GOJAIL_VERSION}; /* pid 0: no process is killed for it */
	struct record holder = {0};
	struct fault fault = {0};
	int pair[2], result;
	size_t size;

	if (argc != 2 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		return 2;
	size = strcmp(argv[1], "replies garbage") == 0 ? 4 : sizeof(reply);
	if (strcmp(argv[1], "is stuck") != 0 && send(pair[1], &reply, size, 0) < 0)
		return 2;
	if (strcmp(argv[1], "ends") == 0)
		shutdown(pair[1], SHUT_WR);
	result = zygote_ask(pair[0], "debian", &request, NULL, clock_ms() + 100, clock_ms() + 200, &holder, &fault);
	printf("%d %d %s\n", result, fault.silent, fault.text);
	return 0;
}
