/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin of Slurm that comes before gojail and fails in the hook that it is told, with
 * a positive number; releases up to 24.11 then leave the hook out for those after it. */
#include <slurm/spank.h>
#include <string.h>

SPANK_PLUGIN(early, 1)

static int result(const char *hook, int argc, char **argv)
{
	if (spank_context() != S_CTX_REMOTE || argc != 1 || strcmp(argv[0], hook))
		return 0;
	slurm_error("early: %s", hook);
	return 1;
}

#define HOOK(name)                                                                                                     \
	int slurm_spank_##name(spank_t sp, int argc, char **argv)                                                      \
	{                                                                                                              \
		(void)sp;                                                                                              \
		return result(#name, argc, argv);                                                                      \
	}

HOOK(init)
HOOK(init_post_opt)
HOOK(user_init)
HOOK(task_init_privileged)
HOOK(task_init)
HOOK(task_post_fork)
