/* SPDX-License-Identifier: Apache-2.0 */
/* oci.h: a step that Slurm puts into a container of its own (srun --container, oci.conf). */
#ifndef GOJAIL_OCI_H
#define GOJAIL_OCI_H

#include <slurm/slurm.h>
#include <stdbool.h>

/*
 * Reports whether Slurm runs the site's OCI runtime in this step, wherever ContainerPath of oci.conf puts its bundle.
 * Slurm has decided that before it calls a plugin, and keeps its decision in a variable. Only if runtime/oci of a later
 * release has no such variable, the bundle is looked for below the spool directory.
 */
bool oci_is_step(const char *spool, const char *job, uint32_t step);

#endif
