/* SPDX-License-Identifier: Apache-2.0 */
/* oci.h: a step that Slurm puts into a container of its own (srun --container, oci.conf). */
#ifndef GOJAIL_OCI_H
#define GOJAIL_OCI_H

#include <slurm/slurm.h>
#include <stdbool.h>

/*
 * Reports whether Slurm runs the site's OCI runtime in this step. slurmstepd has decided that before it calls a plugin,
 * and keeps its decision in a variable. Where Slurm's plugin runtime/oci keeps it to itself (26.11), the bundle is
 * looked for below the spool directory, which a bundle below ContainerPath of oci.conf is not.
 */
bool oci_is_step(const char *spool, const char *job, uint32_t step);

#endif
