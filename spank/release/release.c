/* SPDX-License-Identifier: Apache-2.0 */
#include "release/release.h"

#include <slurm/slurm.h>
#include <slurm/slurm_version.h>
#include <slurm/spank.h>
#include <stddef.h>
#include <string.h>

/*
 * The releases: API_CURRENT of Slurm's META; job_desc_msg_t: size, job, environment, env_size; slurm_job_info_t: size,
 * job; slurm_conf_t: launch_params. The numbers are the same in each 22.05.x, 23.02.x and so on, on 64-bit machines
 * (docs/releases.md).
 */
/* clang-format off */
#define RELEASES(ROW) \
	ROW(22,  5, 38, 880, 324, 224, 268,  904, 388, 600) \
	ROW(23,  2, 39, 896, 332, 232, 276,  928, 412, 608) \
	ROW(23, 11, 40, 904, 340, 232, 276,  928, 412, 592) \
	ROW(24,  5, 41, 912, 340, 232, 276,  952, 412, 576) \
	ROW(24, 11, 42, 912, 340, 232, 276,  960, 412, 608) \
	ROW(25,  5, 43, 920, 348, 240, 284,  976, 412, 616) \
	ROW(25, 11, 44, 944, 664, 240, 284, 1016, 768, 632) \
	ROW(26,  5, 45, 952, 672, 248, 292, 1032, 784, 640)
/* clang-format on */
#define LAST_API 45

/* What the headers of this build say, whose release may be any. */
#define HEADERS (SLURM_VERSION_NUMBER & 0xffff00)
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
#define JOB step_id.job_id
#else
#define JOB job_id
#endif
#define MEASURED                                                                                                       \
	{sizeof(job_desc_msg_t), offsetof(job_desc_msg_t, JOB), offsetof(job_desc_msg_t, environment),                 \
	 offsetof(job_desc_msg_t, env_size)},                                                                          \
		{sizeof(slurm_job_info_t), offsetof(slurm_job_info_t, JOB)}, offsetof(slurm_conf_t, launch_params)

#define CHECK(major, minor, api, s, j, e, n, rs, rj, l)                                                                \
	_Static_assert(HEADERS != SLURM_VERSION_NUM(major, minor, 0) ||                                                \
			       (sizeof(job_desc_msg_t) == (s) && offsetof(job_desc_msg_t, JOB) == (j) &&               \
				offsetof(job_desc_msg_t, environment) == (e) &&                                        \
				offsetof(job_desc_msg_t, env_size) == (n) && sizeof(slurm_job_info_t) == (rs) &&       \
				offsetof(slurm_job_info_t, JOB) == (rj) &&                                             \
				offsetof(slurm_conf_t, launch_params) == (l)),                                         \
		       "slurm.h of Slurm " #major "." #minor " has other structures than the table of release.c");
RELEASES(CHECK)
/* What is used of the headers' own structures is at the same place in each release. */
_Static_assert(offsetof(job_desc_msg_t, admin_comment) == 16 && offsetof(slurm_job_info_t, admin_comment) == 16 &&
		       offsetof(job_info_msg_t, record_count) == 16 && offsetof(job_info_msg_t, job_array) == 24,
	       "slurm.h has AdminComment or the list of jobs at another place than each release that is known");

#define ROW(major, minor, api, s, j, e, n, rs, rj, l)                                                                  \
	{SLURM_VERSION_NUM(major, minor, 0), api, {s, j, e, n}, {rs, rj}, l},
static const struct release releases[] = {
	RELEASES(ROW)
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 6, 0)
	/* Of a newer release, whose headers this build has: taken for the next one, which is not tested. */
	{HEADERS, LAST_API + 1, MEASURED},
#endif
};

const struct release *slurm_release;

/* An alias, because a name of the library itself may be that of another plugin in this process. */
static uint32_t version;

#pragma GCC visibility push(default)
extern uint32_t plugin_version __attribute__((alias("version")));
extern const uint32_t gojail_releases[];

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 6, 0)
#define NEWER HEADERS
#else
#define NEWER
#endif
#define NUMBER(major, minor, ...) SLURM_VERSION_NUM(major, minor, 0),
/* What gojail check reads. */
const uint32_t gojail_releases[] = {RELEASES(NUMBER) NEWER};
#pragma GCC visibility pop

bool is_release_from(uint8_t major, uint8_t minor)
{
	return slurm_release && slurm_release->number >= (uint32_t)SLURM_VERSION_NUM(major, minor, 0);
}

bool release_fits(void)
{
	unsigned char job[4096];
	size_t size = sizeof(job);

	memset(job, 0xa5, sizeof(job));
	slurm_init_job_desc_msg((job_desc_msg_t *)(void *)job); /* clears all of it first */
	while (size > 0 && job[size - 1] == 0xa5)
		size--;
	return slurm_release && size == slurm_release->submission.size;
}

#pragma weak slurm_api_version

/*
 * Finds the release before Slurm looks at the version: each release has an API_CURRENT of its own. A process without
 * Slurm has none.
 */
__attribute__((constructor)) static void find_release(void)
{
	long api = slurm_api_version ? slurm_api_version() >> 16 : 0;

	if (api == 0)
		return;
	for (size_t i = 0; i < sizeof(releases) / sizeof(*releases); i++)
		if (releases[i].api == api)
			slurm_release = &releases[i];
	if (slurm_release)
		version = slurm_release->number;
	else
		slurm_error("gojail " GOJAIL_RELEASE " does not know this release of Slurm, %s than those that it is "
			    "built for: install %s",
			    api > LAST_API ? "which is newer" : "which is older",
			    api > LAST_API ? "a newer gojail" : "Slurm 22.05 or newer");
}
