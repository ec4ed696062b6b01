/* SPDX-License-Identifier: Apache-2.0 */
#include "confine.h"

#include "kernel.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

int confine_open(struct confine *confine, const struct node *node, const struct jail *jail, struct fault *fault)
{
	char path[GOJAIL_PATH_MAX * 2];
	struct stat st;

	confine->no_new_privs = jail->no_new_privs;
	confine->bounding = jail->bounding;
	confine->instructions = 0;
	if (!jail->seccomp[0])
		return 0;
	snprintf(path, sizeof(path), "%s/%s", node->state, jail->seccomp);
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_set(fault, "cannot read the seccomp filter %s: %s; run: gojail reload", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022) || st.st_size <= 0 ||
	    st.st_size > (off_t)sizeof(confine->filter) || st.st_size % sizeof(confine->filter[0]) ||
	    read(fd, confine->filter, (size_t)st.st_size) != st.st_size)
		return fault_set(fault, "the seccomp filter %s is damaged; run: gojail reload", path);
	confine->instructions = (unsigned short)((size_t)st.st_size / sizeof(confine->filter[0]));
	return 0;
}

/* PR_CAPBSET_READ fails beyond the last capability of this kernel (capabilities(7)). */
static int drop_capabilities(uint64_t bounding, struct fault *fault)
{
	if (bounding == UINT64_MAX)
		return 0;
	for (unsigned long number = 0; number < 64 && prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; number++)
		if (!(bounding >> number & 1) && prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0)
			return fault_set(fault, "cannot drop capability %lu: %s", number, strerror(errno));
	return 0;
}

int confine_apply(const struct confine *confine, struct fault *fault)
{
	struct sock_fprog program = {.len = confine->instructions,
				     .filter = (struct sock_filter *)(uintptr_t)confine->filter};

	if (drop_capabilities(confine->bounding, fault) < 0)
		return -1;
	if (confine->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fault_set(fault, "cannot set no_new_privs: %s", strerror(errno));
	/* Last: it refuses much of what comes before. Speculation as everywhere on the node (seccomp(2)). */
	if (program.len && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) < 0)
		return fault_set(fault, "cannot install the seccomp filter: %s", strerror(errno));
	return 0;
}
