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

/* Adds a word to those of the calls to come, or replaces the one that was added with that name. Returns 0, or -1 with a
 * fault. */
int library_add_word(const char *name, int value, struct fault *fault);

/* Replaces a word that is there by this one, NAME=VALUE, which must last. */
void library_replace_word(char *word);

/*
 * Makes the call in this process, which has Go's threads from then on: a child of it could not make another. Returns
 * the answer, or NULL with a fault.
 */
const struct gojail_call *library_call(const char *verb, struct fault *fault);

/* Returns the text that the last call answered. */
const char *library_answer(void);

/* Makes the call in a child of its own: it may hang in storage, die, or start threads. Returns 0, or -1 with a fault.
 */
int library_call_in_child(const char *verb, int64_t until, struct fault *fault);

#endif
