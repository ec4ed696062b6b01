/* SPDX-License-Identifier: Apache-2.0 */
/* oci.h: a step that Slurm puts into a container of its own (srun --container, oci.conf). */
#ifndef GOJAIL_OCI_H
#define GOJAIL_OCI_H

#include <slurm/slurm.h>
#include <stdbool.h>

/* Reports whether Slurm has created a bundle for this step below its spool directory, as it does before it calls a plugin. */
bool oci_is_step(const char *spool, const char *job, uint32_t step);

#endif
