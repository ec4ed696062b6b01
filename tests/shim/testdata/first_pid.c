/* SPDX-License-Identifier: Apache-2.0 */
/* Prints after which PIDs the namespaces of a zygote count: the arguments are their number and the limit of PIDs. */
#include "launcher/first_pid.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	uint32_t at = 7, limit = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;

	for (int left = argc == 3 ? atoi(argv[1]) : 0; left > 0; left--, at += FIRST_PID_STEP)
		printf("%u\n", first_pid_choose(at, limit));
	printf("%u\n%u\n", first_pid_choose(0, limit), first_pid_choose(~0u, limit));
	return 0;
}
