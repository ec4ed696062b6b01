// SPDX-License-Identifier: Apache-2.0
//
// Lets libseccomp make a filter from the lines of standard input, to compare with:
//	default ARCH ACTION
//	rule ACTION NAME COUNT (INDEX OP VALUE VALUE2)...
// The program goes to standard output, names that the library lacks to standard error.
// The declarations are those of seccomp.h, which need not be installed.

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

struct scmp_arg_cmp {
	unsigned int arg;
	int op;
	uint64_t a, b;
};
void *seccomp_init(uint32_t def);
uint32_t seccomp_arch_native(void);
int seccomp_arch_add(void *, uint32_t);
int seccomp_arch_remove(void *, uint32_t);
int seccomp_syscall_resolve_name(const char *);
int seccomp_syscall_resolve_name_arch(uint32_t, const char *);
int seccomp_rule_add_array(void *, uint32_t, int, unsigned int, const struct scmp_arg_cmp *);
int seccomp_export_bpf(void *, int);

int main(void)
{
	unsigned int arch, action, count;
	char name[64];

	if (scanf(" default %i %i", (int *)&arch, (int *)&action) != 2)
		return 2;
	void *ctx = seccomp_init(action);
	if (arch != seccomp_arch_native() &&
	    (seccomp_arch_add(ctx, arch) || seccomp_arch_remove(ctx, seccomp_arch_native())))
		return 3;
	while (scanf(" rule %u %63s %u", &action, name, &count) == 3) {
		struct scmp_arg_cmp cmp[6];
		for (unsigned int i = 0; i < count; i++)
			if (scanf(" %u %d %lu %lu", &cmp[i].arg, &cmp[i].op, &cmp[i].a, &cmp[i].b) != 4)
				return 4;
		if (seccomp_syscall_resolve_name_arch(arch, name) == -1)
			fprintf(stderr, "%s\n", name);
		else
			seccomp_rule_add_array(ctx, action, seccomp_syscall_resolve_name(name), count, cmp);
	}
	return seccomp_export_bpf(ctx, STDOUT_FILENO) ? 5 : 0;
}
