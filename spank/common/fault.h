/* SPDX-License-Identifier: Apache-2.0 */
/* fault.h: one line that says what went wrong; the first one is kept. */
#ifndef GOJAIL_FAULT_H
#define GOJAIL_FAULT_H

#include "gojail.h"

struct fault {
	char text[GOJAIL_TEXT_MAX];
};

/* Keeps the text unless one is there already. Always -1, to be returned. */
__attribute__((format(printf, 2, 3))) int fault_set(struct fault *fault, const char *format, ...);

#endif
