/* SPDX-License-Identifier: Apache-2.0 */
/* Usage: oci SPOOL [PLUGIN]: does what slurmstepd does that loads a runtime plugin. Exit status 0: step 0 of job 7 has
 * a container. */
#include "plugin/oci.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#ifdef OF_SLURMSTEPD
const void *oci_conf = OF_SLURMSTEPD;
#endif

int main(int argc, char **argv)
{
	if (argc > 2 && !dlopen(argv[2], RTLD_LAZY)) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	return oci_is_step(argv[1], "7", 0) ? 0 : 1;
}
