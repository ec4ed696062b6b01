/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/events.h"

#include <string.h>

bool is_first_node(const char *list, const char *node)
{
	while (*list && *list != ',') {
		if (*list == '[') { /* the first number counts, up to the end of its range */
			list++;
			while (*list && !strchr("-,]", *list))
				if (*list++ != *node++)
					return false;
			list = strchr(list, ']');
			if (!list)
				return false;
			list++;
		} else if (*list++ != *node++)
			return false;
	}
	return *node == '\0';
}
