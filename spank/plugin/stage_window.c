/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/stage_window.h"

#include <errno.h>
#include <string.h>

int stage_window_open(struct visit *visit, int stage, struct fault *fault)
{
	if (visit_begin(visit, fault) < 0)
		return -1;
	if (visit_enter(stage) == 0)
		return 0;
	fault_set(fault, "cannot enter the stage of the jail: %s", strerror(errno));
	visit_end(visit, fault);
	return -1;
}
