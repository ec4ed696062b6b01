// SPDX-License-Identifier: Apache-2.0
//
// call NAME ABI NUMBER ARG...: makes one system call by the 64-bit or the 32-bit
// convention and prints what the kernel returned.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>
#include <sys/syscall.h>

static long call32(long nr, const long *a)
{
#ifdef __x86_64__
	long r;
	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(nr), "b"(a[0]), "c"(a[1]), "d"(a[2]), "S"(a[3]), "D"(a[4])
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)r;
#else
	(void)nr, (void)a;
	return -ENOSYS;
#endif
}

int main(int argc, char **argv)
{
	long a[6] = {0};
	long nr, r;

	if (argc < 3)
		return 2;
	nr = strtol(argv[2], NULL, 0);
	for (int i = 0; i < 6 && i + 3 < argc; i++)
		a[i] = (long)strtoull(argv[i + 3], NULL, 0);
	if (!strcmp(argv[1], "32")) {
		r = call32(nr, a);
	} else {
		r = syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (r < 0)
			r = -errno;
	}
	printf("%ld\n", r);
	return 0;
}
