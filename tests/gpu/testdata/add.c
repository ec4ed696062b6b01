/* SPDX-License-Identifier: Apache-2.0 */
/* Adds two vectors on the first GPU through the driver's library alone, and prints how many GPUs there are and whether
 * the sums are right. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 65536
#define THREADS 256

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry add(.param .u64 a, .param .u64 b) {\n"
			  ".reg .u32 %r<5>; .reg .u64 %d<6>; .reg .f32 %f<4>;\n"
			  "ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b];\n"
			  "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
			  "mad.lo.u32 %r4, %r1, %r2, %r3; mul.wide.u32 %d3, %r4, 4;\n"
			  "add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;\n"
			  "ld.global.f32 %f1, [%d4]; ld.global.f32 %f2, [%d5];\n"
			  "add.f32 %f3, %f1, %f2; st.global.f32 [%d4], %f3; ret; }\n";

static void *driver;

/* Calls a function of the driver; ends the program if it reports an error. */
#define CALL(name, ...)                                                                                                \
	do {                                                                                                           \
		int (*call)() = (int (*)())dlsym(driver, name);                                                        \
		int result = call ? call(__VA_ARGS__) : -1;                                                            \
		if (result) {                                                                                          \
			printf("%s: error %d\n", name, result);                                                        \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

int main(void)
{
	static float a[COUNT], b[COUNT];
	unsigned long long on_a = 0, on_b = 0;
	void *context = NULL, *module = NULL, *function = NULL, *arguments[] = {&on_a, &on_b};
	int count = 0, device = 0;

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver)
		return printf("%s\n", dlerror()), 1;
	CALL("cuInit", 0);
	CALL("cuDeviceGetCount", &count);
	CALL("cuDeviceGet", &device, 0);
	CALL("cuCtxCreate_v2", &context, 0, device);
	CALL("cuModuleLoadData", &module, ptx);
	CALL("cuModuleGetFunction", &function, module, "add");
	CALL("cuMemAlloc_v2", &on_a, sizeof(a));
	CALL("cuMemAlloc_v2", &on_b, sizeof(b));
	for (int i = 0; i < COUNT; i++) {
		a[i] = (float)i;
		b[i] = 1.0F + (float)(rand() % 1000);
	}
	CALL("cuMemcpyHtoD_v2", on_a, a, sizeof(a));
	CALL("cuMemcpyHtoD_v2", on_b, b, sizeof(b));
	CALL("cuLaunchKernel", function, COUNT / THREADS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL);
	CALL("cuCtxSynchronize");
	CALL("cuMemcpyDtoH_v2", a, on_a, sizeof(a));
	for (int i = 0; i < COUNT; i++)
		if (a[i] != (float)i + b[i])
			return printf("%d: %f, not %f\n", i, a[i], (float)i + b[i]), 1;
	CALL("cuCtxDestroy_v2", context);
	return printf("%d GPU, sums are right\n", count) < 0;
}
