/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin of Slurm that comes before gojail and holds a batch step back until the file that it is told is there. */
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <unistd.h>

SPANK_PLUGIN(late, 1)

int slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
	uint32_t step;

	if (spank_context() != S_CTX_REMOTE || argc != 1 || spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
	    step != SLURM_BATCH_SCRIPT)
		return 0;
	for (int tries = 0; tries < 6000 && access(argv[0], F_OK) < 0; tries++)
		usleep(10000);
	return 0;
}
