/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/oci.h"

#include "gojail.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Slurm's own variable: what it read from oci.conf for a step with --container, and NULL for every other step. It runs
 * the runtime only where it is not NULL. slurmstepd has it from 22.05 to 26.05 (container.c).
 */
extern const void *oci_conf __attribute__((weak));

/* The plugin that has it from 26.11 on, with --runtime or DefRuntimePlugin of slurm.conf (runtime_oci.c). */
#define RUNTIME "runtime_oci.so"

/*
 * Reads that variable of the plugin, which is in no scope that a weak reference is looked up in. Nothing is loaded:
 * RTLD_NOLOAD finds what slurmstepd has. Reports whether the plugin has the variable, or is not loaded at all.
 */
static bool read_of_runtime(const void **conf)
{
	void *runtime = dlopen(RUNTIME, RTLD_LAZY | RTLD_NOLOAD);
	const void *const *variable = runtime ? dlsym(runtime, "oci_conf") : NULL;

	*conf = variable ? *variable : NULL;
	if (runtime)
		dlclose(runtime);
	return !runtime || variable;
}

/* Reports whether Slurm has made a bundle of the step below its spool directory. */
static bool has_bundle(const char *spool, const char *job, uint32_t step)
{
	char path[GOJAIL_PATH_MAX + 64], number[16];

	snprintf(number, sizeof(number), "%u", (unsigned)step);
	snprintf(path, sizeof(path), "%s/oci-job%u-%s", spool, (unsigned)strtoul(job, NULL, 10),
		 step == SLURM_BATCH_SCRIPT     ? "batch" :
		 step == SLURM_INTERACTIVE_STEP ? "interactive" :
						  number);
	return access(path, F_OK) == 0;
}

bool oci_is_step(const char *spool, const char *job, uint32_t step)
{
	const void *conf;

	if (&oci_conf)
		return oci_conf;
	return read_of_runtime(&conf) ? conf != NULL : has_bundle(spool, job, step);
}
