/* SPDX-License-Identifier: Apache-2.0 */
/* library.h: the one call into libgojail.so (include/gojail.h), and the launcher's own words, which are passed on to
 * it. */
#ifndef GOJAIL_LIBRARY_H
#define GOJAIL_LIBRARY_H

#include "common/fault.h"
#include "gojail.h"

#include <stdint.h>

/* Prepares calls of the library in that directory; words are the launcher's, VERB first, up to "--". Returns 0, or -1
 * with errno. */
int library_open(const char *directory, char **words);

/* Returns the value of the word NAME=VALUE, or "". */
const char *library_word(const char *name);

/* Returns what follows the word "--", up to NULL. */
char **library_command(void);

/* Adds the word "NAME=VALUE" to those of the calls to come, in the place of the one with that name. Returns 0, or -1
 * with a fault. */
__attribute__((format(printf, 2, 3))) int library_set_word(struct fault *fault, const char *format, ...);

/*
 * Makes the call in this process, which has Go's threads from then on: a child of it could not make another. Returns
 * the answer, or NULL with a fault.
 */
const struct gojail_call *library_call(const char *verb, struct fault *fault);

/* Makes the call, and adds the trees of the answer, with these flags as well, to others. Returns 0, or -1 with a fault.
 */
int library_add_trees(const char *verb, struct gojail_tree *trees, uint32_t *count, uint32_t flags,
		      struct fault *fault);

/* Returns the text that the last call answered. */
const char *library_answer(void);

/* Makes the call in a child of its own: it may hang in storage, die, or start threads. Returns 0, or -1 with a fault.
 */
int library_call_in_child(const char *verb, int64_t until, struct fault *fault);

#endif
