/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h: one line for each event, in the node's journal. */
#ifndef GOJAIL_JOURNAL_H
#define GOJAIL_JOURNAL_H

enum { JOURNAL_ERROR = 3, JOURNAL_INFO = 6 }; /* syslog(3) */

/*
 * Sends a line of KEY=VALUE to the journal, or the syslog daemon, in the thread's mount namespace. It never waits: a
 * line that is not taken at once is lost. Unlike syslog(3), which waits, and keeps a descriptor.
 */
__attribute__((format(printf, 2, 3))) void journal_write(int priority, const char *format, ...);

/* Copies a text as a value in quotes: what would end it becomes an apostrophe. Returns to. */
const char *journal_quote(char *to, unsigned long size, const char *text);

/*
 * A job has ended: what are the fields of its line, more are further ones, which begin with a blank. why is the reason
 * for which not all of it is gone, or "".
 */
void journal_ended(const char *what, const char *more, const char *why);

#endif
