/* SPDX-License-Identifier: Apache-2.0 */
/* printable.h: text that a user wrote, as a terminal and a log may show it. */
#ifndef GOJAIL_PRINTABLE_H
#define GOJAIL_PRINTABLE_H

/* Replaces, in place, what could command a terminal or break a line: ASCII controls by a blank; and
 * byte by byte by '?' what is no UTF-8, line separators and what hides or turns text around. */
void make_printable(char *text);

#endif
