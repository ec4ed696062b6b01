/* SPDX-License-Identifier: Apache-2.0 */
#include "common/capabilities.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];

static struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

/* Sets what differs from what the process has. Returns 0, or -1 with errno. */
static int set(const capabilities have, const capabilities left)
{
	return memcmp(have, left, sizeof(capabilities)) == 0 ? 0 : (int)syscall(SYS_capset, &header, left);
}

int capabilities_keep(uint64_t those)
{
	capabilities have, left = {{0}};

	if (syscall(SYS_capget, &header, have) < 0)
		return -1;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		left[i].permitted = left[i].effective = have[i].permitted & (uint32_t)(those >> (32 * i));
	return set(have, left);
}

int capabilities_keep_inheritable(uint64_t those)
{
	capabilities have, left;

	if (syscall(SYS_capget, &header, have) < 0)
		return -1;
	memcpy(left, have, sizeof(left));
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		left[i].inheritable &= (uint32_t)(those >> (32 * i));
	return set(have, left);
}
