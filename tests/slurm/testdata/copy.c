/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin of Slurm that comes after gojail and gives slurmstepd a copy of the mount namespace that it is in, as plugins for mounts of
 * their own do. */
#define _GNU_SOURCE
#include <sched.h>
#include <slurm/spank.h>

SPANK_PLUGIN(copy, 1)

int slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
	(void)sp;
	(void)argc;
	(void)argv;
	return spank_context() == S_CTX_REMOTE && unshare(CLONE_NEWNS) < 0 ? -1 : 0;
}
