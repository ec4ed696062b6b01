// SPDX-License-Identifier: Apache-2.0
//
// A client of a user's own: a batch job whose environment has SLURM_GET_USER_ENV twice, first with
// another value, which sbatch never sends. Prints the job's id.

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	char *environment[] = {"SLURM_GET_USER_ENV=0", "PATH=/usr/bin:/bin", "SLURM_GET_USER_ENV=1", NULL};
	submit_response_msg_t *answer;
	job_desc_msg_t job;

	slurm_init(NULL);
	slurm_init_job_desc_msg(&job);
	job.name = "twice";
	job.environment = environment;
	job.env_size = 3;
	job.user_id = getuid();
	job.group_id = getgid();
	job.min_nodes = 1;
	job.num_tasks = 1;
	job.work_dir = "/home/alice";
	job.script = "#!/bin/sh\ncat /etc/gojail-jail\n";
	if (slurm_submit_batch_job(&job, &answer)) {
		fprintf(stderr, "twice: slurmctld refuses the job\n");
		return 1;
	}
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(26, 5, 0)
	printf("%u\n", answer->job_id);
#else
	printf("%u\n", answer->step_id.job_id);
#endif
	return 0;
}
