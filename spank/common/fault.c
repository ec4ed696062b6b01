/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fault.h"

#include <stdarg.h>
#include <stdio.h>

static int set_text(struct fault *fault, bool silent, const char *format, va_list args)
{
	if (fault->text[0])
		return -1;
	fault->silent = silent;
	vsnprintf(fault->text, sizeof(fault->text), format, args);
	/* The text travels in lines, and is shown on terminals: what a user wrote may be in it. */
	make_printable(fault->text);
	return -1;
}

int fault_set(struct fault *fault, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set_text(fault, false, format, args);
	va_end(args);
	return -1;
}

int fault_set_silent(struct fault *fault, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set_text(fault, true, format, args);
	va_end(args);
	return -1;
}

int fault_set_earlier(struct fault *fault, const char *format, ...)
{
	bool first = !fault->text[0];
	va_list args;

	va_start(args, format);
	set_text(fault, false, format, args);
	va_end(args);
	fault->earlier = fault->earlier || first;
	return -1;
}
