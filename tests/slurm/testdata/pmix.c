/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmix.c: a PMIx client that prints its rank and how many there are, which the server
 * tells through files in its directory (PMIx standard 4). The library is loaded by
 * name: each release of Debian has its own.
 */
#include <dlfcn.h>
#include <pmix.h>
#include <stdio.h>

int main(void)
{
	void *library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
	__typeof__(&PMIx_Init) init = (__typeof__(init))dlsym(library, "PMIx_Init");
	__typeof__(&PMIx_Fence) fence = (__typeof__(fence))dlsym(library, "PMIx_Fence");
	__typeof__(&PMIx_Get) get = (__typeof__(get))dlsym(library, "PMIx_Get");
	__typeof__(&PMIx_Finalize) finalize = (__typeof__(finalize))dlsym(library, "PMIx_Finalize");
	pmix_proc_t me, all;
	pmix_value_t *size;
	int status;

	if (!library || !init || !fence || !get || !finalize) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if ((status = init(&me, NULL, 0)) || (status = fence(NULL, 0, NULL, 0))) {
		fprintf(stderr, "PMIx status %d\n", status);
		return 1;
	}
	all = me;
	all.rank = PMIX_RANK_WILDCARD;
	if ((status = get(&all, PMIX_JOB_SIZE, NULL, 0, &size))) {
		fprintf(stderr, "PMIx status %d of PMIx_Get\n", status);
		return 1;
	}
	printf("rank %u of %u\n", me.rank, size->data.uint32);
	return finalize(NULL, 0);
}
