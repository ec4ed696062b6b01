/* SPDX-License-Identifier: Apache-2.0 */
#include "common/earlier.h"

#include "common/clean.h"
#include "common/launch.h"

#include <inttypes.h>

int earlier_end(const struct node *node, const char *job, uid_t uid, int64_t begun, int64_t until, struct fault *fault)
{
	struct launch launch;

	launch_prepare(&launch, node, "earlier", until);
	launch_add_word(&launch, "job=%s", job);
	launch_add_word(&launch, "uid=%u", (unsigned)uid);
	if (begun)
		launch_add_word(&launch, "begun=%" PRId64, begun);
	if (launch_run(&launch, node, until, fault) < 0)
		return -1;
	clean_start(node, job, "");
	return 0;
}
