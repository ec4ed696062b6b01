/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clean.h"

#include "common/clock.h"
#include "common/launch.h"

void clean_start(const struct node *node, const char *job, const char *scratch)
{
	struct launch launch;

	launch_prepare(&launch, node, "clean", clock_ms() + CLEAN_MS);
	launch_add_word(&launch, "job=%s", job);
	if (scratch[0])
		launch_add_word(&launch, "scratch=%s", scratch);
	launch_detached(&launch);
}
