// SPDX-License-Identifier: Apache-2.0
//
// Asks a zygote whose holder replies once, and then ends or hangs: prints whether the storage counts as silent, and the fault.

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
	int pair[2];

	if (argc != 2 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0 || send(pair[1], &reply, sizeof(reply), 0) < 0)
		return 2;
	if (strcmp(argv[1], "ends") == 0)
		shutdown(pair[1], SHUT_WR);
	if (zygote_ask(pair[0], "debian", &request, NULL, clock_ms() + 200, &holder, &fault) != -1)
		return 1;
	printf("%d %s\n", fault.silent, fault.text);
	return 0;
}
