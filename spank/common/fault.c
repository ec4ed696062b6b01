/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fault.h"

#include <stdarg.h>
#include <stdio.h>

/* Sets the text, and the mark that says what kind of fault it is, unless a text is set already. Returns -1. */
static int set_text(struct fault *fault, bool *mark, const char *format, va_list args)
{
	if (fault->text[0])
		return -1;
	if (mark)
		*mark = true;
	vsnprintf(fault->text, sizeof(fault->text), format, args);
	/* The text travels in lines, and is shown on terminals: what a user wrote may be in it. */
	make_printable(fault->text);
	return -1;
}

int fault_set(struct fault *fault, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set_text(fault, NULL, format, args);
	va_end(args);
	return -1;
}

int fault_set_silent(struct fault *fault, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set_text(fault, &fault->silent, format, args);
	va_end(args);
	return -1;
}

int fault_set_request(struct fault *fault, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set_text(fault, &fault->request, format, args);
	va_end(args);
	return -1;
}

int fault_set_earlier(struct fault *fault, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set_text(fault, &fault->earlier, format, args);
	va_end(args);
	return -1;
}

int fault_add(struct fault *fault, const struct fault *other)
{
	if (!fault->text[0])
		*fault = *other;
	return -1;
}
