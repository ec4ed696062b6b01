// SPDX-License-Identifier: Apache-2.0
//
// job_submit/gojail, loaded by slurmctld alone (JobSubmitPlugins=gojail). For a batch job with
// SLURM_GET_USER_ENV=1 in its environment slurmd runs "su - USER" on the node before slurmstepd
// and every SPANK plugin exist: the user's login scripts run outside the jail (_get_user_env in
// slurmd/req.c). sbatch sets the variable for --get-user-env and for --export with anything but
// ALL, scrontab for every job, and a user may export it or send it by a client of his own. Every
// way of submitting a job leads through job_submit, and no job's environment changes after that. The
// entry that is left, SLURM_GET_USER_ENV=0, makes the plugin on the node set what a login of the user
// begins with (environment_add_login).

#include "release/release.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT extern const char plugin_name[];
EXPORT extern const char plugin_type[];
const char plugin_name[] = "gojail: no login scripts of users outside their jails";
// Of the type "spank" Slurm compares major and minor of plugin_version, of another one the third number, too, which
// nothing in slurmctld tells (_verify_syms in plugin.c). For nothing else does it read the type.
const char plugin_type[] = "spank";

// init refuses to start slurmctld with a Slurm whose structures are others than those of its release.
EXPORT int init(void)
{
	if (release_fits())
		return SLURM_SUCCESS;
	slurm_error("job_submit/gojail: this Slurm was built with another job_desc_msg_t than its release has: build "
		    "gojail "
		    "with its headers");
	return SLURM_ERROR;
}

// job_submit clears the request in every entry of that name: slurmd looks for any that says "1".
EXPORT int job_submit(job_desc_msg_t *job, uint32_t uid, char **message)
{
	static const char asks[] = "SLURM_GET_USER_ENV=1";
	char **environment = MEMBER(char **, job, slurm_release->submission.environment);
	uint32_t size = MEMBER(uint32_t, job, slurm_release->submission.env_size);

	(void)uid;
	(void)message;
	for (uint32_t i = 0; environment && i < size; i++) {
		char *entry = environment[i];
		if (entry && !strcmp(entry, asks))
			entry[sizeof(asks) - 2] = '0';
	}
	return SLURM_SUCCESS;
}

// job_modify has nothing to do: an update of a job carries no environment. Up to 22.05 it has
// no fourth argument, which the calling convention lets it ignore.
EXPORT int job_modify(job_desc_msg_t *job, void *record, uint32_t uid, char **message)
{
	(void)job;
	(void)record;
	(void)uid;
	(void)message;
	return SLURM_SUCCESS;
}
