/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmix.h: the directory that Slurm's mpi/pmix makes for a step's clients (cli_tmpdir in its pmixp_info.c).
 *
 * It is created in mpi_p_slurmstepd_prefork, between init_post_opt and user_init, where slurmstepd is in the stage and
 * /tmp is the job's. It is removed in mpi_fini, after exit, where slurmstepd is on the node and /tmp is the node's.
 */
#ifndef GOJAIL_PMIX_H
#define GOJAIL_PMIX_H

#include <stdint.h>
#include <sys/types.h>

struct pmix {
	char path[96]; /* of the directory, or "" */
	uid_t user;    /* of the job */
};

/* Names the directory of a step. */
void pmix_name(struct pmix *pmix, uid_t user, const char *job, uint32_t step);

/* Opens /tmp of a jail, whose root is root. Returns -1 if there is none. */
int pmix_open_tmp(int root);

/*
 * Removes the directory from the job's /tmp, with the rights of the user, and creates an empty one on the node, where
 * the calling thread is, for mpi_fini to remove. tmp is of pmix_open_tmp: the jail's root may be on storage that has
 * become silent. What fails is Slurm's to log.
 */
void pmix_remove(const struct pmix *pmix, int tmp);

#endif
