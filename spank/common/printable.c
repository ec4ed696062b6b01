/* SPDX-License-Identifier: Apache-2.0 */
/* printable.c: text that a user wrote, as a terminal and a log may show it. */
#include "common/fault.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Code points of Unicode's categories Cc (C1), Cf, Zl, Zp, Cs and Co, and what is none (above the last). */
static const struct {
	uint32_t first, last;
} hidden[] = {
	{0x80, 0x9f},       {0xad, 0xad},          {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},
	{0x70f, 0x70f},     {0x890, 0x891},        {0x8e2, 0x8e2},     {0x180e, 0x180e},   {0x200b, 0x200f},
	{0x2028, 0x202e},   {0x2060, 0x206f},      {0xd800, 0xf8ff},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},
	{0xfffe, 0xffff},   {0x110bd, 0x110bd},    {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
	{0x1d173, 0x1d17a}, {0xe0000, UINT32_MAX},
};

/* Returns the bytes of the sequence at text and its code point, or 0 if it is no UTF-8: cut off, longer than
 * need be, or not begun. A NUL ends every sequence, as it is no continuation. */
static size_t decode(const unsigned char *text, uint32_t *point)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = text[0] < 0x80 ? 1 :
			text[0] < 0xc0 ? 0 :
			text[0] < 0xe0 ? 2 :
			text[0] < 0xf0 ? 3 :
			text[0] < 0xf8 ? 4 :
					 0;

	if (!length)
		return 0;
	*point = length == 1 ? text[0] : text[0] & (0x7fU >> length);
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		*point = *point << 6 | (text[i] & 0x3f);
	}
	return *point < least[length] ? 0 : length;
}

static int is_hidden(uint32_t point)
{
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]) && point >= hidden[i].first; i++)
		if (point <= hidden[i].last)
			return 1;
	return 0;
}

void make_printable(char *text)
{
	for (unsigned char *at = (unsigned char *)text; *at;) {
		uint32_t point = 0;
		size_t length = decode(at, &point);

		if (point < 0x80 && length) {
			if (point < ' ' || point == 0x7f)
				*at = ' ';
		} else if (!length || is_hidden(point)) {
			length = length ? length : 1;
			memset(at, '?', length);
		}
		at += length;
	}
}
