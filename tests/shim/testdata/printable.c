// SPDX-License-Identifier: Apache-2.0
//
// Makes the texts of standard input, each with a NUL at its end, printable.

#include "common/fault.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	char *text = NULL;
	size_t size = 0;

	for (ssize_t n; (n = getdelim(&text, &size, '\0', stdin)) > 0;) {
		// In a block of its own length: the sanitizer sees a byte too many that is read.
		char *own = malloc((size_t)n);
		for (ssize_t i = 0; i < n; i++)
			own[i] = text[i];
		make_printable(own);
		fwrite(own, 1, (size_t)n, stdout);
		free(own);
	}
	free(text);
	return 0;
}
