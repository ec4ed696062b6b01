/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/oci.h"

#include "gojail.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * slurmstepd's own variable, from 22.05 to 26.05: what setup_container read from oci.conf for a step with --container,
 * and NULL for every other step (container.c). container_run starts the runtime only where it is not NULL.
 */
extern const void *oci_conf __attribute__((weak));

bool oci_is_step(const char *spool, const char *job, uint32_t step)
{
	char path[GOJAIL_PATH_MAX + 64], number[16];

	if (&oci_conf)
		return oci_conf;
	snprintf(number, sizeof(number), "%u", (unsigned)step);
	snprintf(path, sizeof(path), "%s/oci-job%u-%s", spool, (unsigned)strtoul(job, NULL, 10),
		 step == SLURM_BATCH_SCRIPT     ? "batch" :
		 step == SLURM_INTERACTIVE_STEP ? "interactive" :
						  number);
	return access(path, F_OK) == 0;
}
