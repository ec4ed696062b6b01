/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/oci.h"

#include "plugin/release.h"

#include "gojail.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool oci_is_step(const char *spool, const char *job, uint32_t step)
{
	char path[GOJAIL_PATH_MAX + 64], number[16];

	snprintf(number, sizeof(number), OCI_NUMBER, (unsigned)step);
	snprintf(path, sizeof(path), "%s/oci-job" OCI_NUMBER "-%s", spool, (unsigned)strtoul(job, NULL, 10),
		 step == SLURM_BATCH_SCRIPT ? "batch" : step == SLURM_INTERACTIVE_STEP ? "interactive" :
											 number);
	return access(path, F_OK) == 0;
}
