/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/stage_window.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

int stage_window_open(struct stage_window *window, int stage, struct fault *fault)
{
	if (visit_begin(&window->visit, fault) < 0)
		return -1;
	if (visit_enter(stage) == 0)
		return 0;
	fault_set(fault, "cannot enter the stage of the jail: %s", strerror(errno));
	visit_end(&window->visit, fault);
	return -1;
}

bool stage_window_is_elsewhere(const struct stage_window *window)
{
	return window->process && getpid() != window->process;
}

int stage_window_leave(struct stage_window *window, struct fault *fault)
{
	return stage_window_is_elsewhere(window) ? 0 : visit_leave(&window->visit, fault);
}

int stage_window_close(struct stage_window *window, struct fault *fault)
{
	return visit_end(&window->visit, fault);
}
