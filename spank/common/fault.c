/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fault.h"

#include "common/printable.h"

#include <stdarg.h>
#include <stdio.h>

int fault_set(struct fault *fault, const char *format, ...)
{
	va_list args;

	if (fault->text[0])
		return -1;
	va_start(args, format);
	vsnprintf(fault->text, sizeof(fault->text), format, args);
	va_end(args);
	/* The text travels in lines, and is shown on terminals: what a user wrote may be in it. */
	make_printable(fault->text);
	return -1;
}
