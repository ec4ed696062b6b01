/* SPDX-License-Identifier: Apache-2.0 */
/* fault.h: one line that says what failed; the first one wins. */
#ifndef GOJAIL_FAULT_H
#define GOJAIL_FAULT_H

#include "gojail.h"

#include <stdbool.h>

struct fault {
	char text[GOJAIL_TEXT_MAX];
	bool silent;  /* the storage of the jail may not answer: nothing on it may be touched */
	bool request; /* the user asked for something that is refused; the node has no fault */
	bool earlier; /* an earlier job of the same number left something, which earlier_end may remove (launch.h) */
};

/* Sets the text unless one is set already. Returns -1, for the caller to return. */
__attribute__((format(printf, 2, 3))) int fault_set(struct fault *fault, const char *format, ...);

/* The same, for storage that did not answer in time. */
__attribute__((format(printf, 2, 3))) int fault_set_silent(struct fault *fault, const char *format, ...);

/* The same, for a request that is refused on any node. */
__attribute__((format(printf, 2, 3))) int fault_set_request(struct fault *fault, const char *format, ...);

/* The same, for what an earlier job of the same number left. */
__attribute__((format(printf, 2, 3))) int fault_set_earlier(struct fault *fault, const char *format, ...);

/* Copies another fault, unless one is set already. Returns -1. */
int fault_add(struct fault *fault, const struct fault *other);

/* Replaces, in place, what could command a terminal or break a line: ASCII controls by a blank; and
 * byte by byte by '?' what is no UTF-8, line separators and what hides or turns text around. */
void make_printable(char *text);

#endif
