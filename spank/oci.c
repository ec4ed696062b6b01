/* SPDX-License-Identifier: Apache-2.0 */
#include "oci.h"

#include "gojail.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* _generate_bundle_path (22.05) and _generate_spooldir_pattern (24.11) in Slurm's container.c. */
bool oci_is_step(const char *spool, const char *job, uint32_t step)
{
	char path[GOJAIL_PATH_MAX + 64], padded[16], plain[16];
	unsigned number = (unsigned)strtoul(job, NULL, 10);

	if (step == SLURM_BATCH_SCRIPT || step == SLURM_INTERACTIVE_STEP) {
		snprintf(plain, sizeof(plain), "%s", step == SLURM_BATCH_SCRIPT ? "batch" : "interactive");
		snprintf(padded, sizeof(padded), "%s", plain);
	} else {
		snprintf(plain, sizeof(plain), "%u", (unsigned)step);
		snprintf(padded, sizeof(padded), "%05u", (unsigned)step);
	}
	snprintf(path, sizeof(path), "%s/oci-job%05u-%s", spool, number, padded);
	if (access(path, F_OK) == 0)
		return true;
	snprintf(path, sizeof(path), "%s/oci-job%u-%s", spool, number, plain);
	return access(path, F_OK) == 0;
}
