// SPDX-License-Identifier: Apache-2.0
//
// Prints the project of each job that the arguments name, one on a line.

#include "common/quota.c"

#include <stdio.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		printf("%#x\n", find_project(argv[i]));
	return 0;
}
