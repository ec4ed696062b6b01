/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noop.c: a SPANK plugin that does nothing in the hooks that gojail has. With
 * -DWITH_EPILOG it also has job_epilog, for which slurmd starts a process.
 */
#include <slurm/spank.h>

#define NOTHING(hook)                                                                                                  \
	int slurm_spank_##hook(spank_t sp, int argc, char **argv)                                                      \
	{                                                                                                              \
		(void)sp;                                                                                              \
		(void)argc;                                                                                            \
		(void)argv;                                                                                            \
		return 0;                                                                                              \
	}

SPANK_PLUGIN(noop, 1)

NOTHING(init)
NOTHING(init_post_opt)
NOTHING(user_init)
NOTHING(task_init_privileged)
NOTHING(task_post_fork)
NOTHING(task_exit)
NOTHING(exit)
#ifdef WITH_EPILOG
NOTHING(job_epilog)
#endif
