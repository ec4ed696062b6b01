/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tmp_files.h: what Slurm keeps for a step in the node's /tmp, where the job's programs do not find it.
 *
 * For srun --x11 it is a file with cookies. Its mpi/pmix makes a directory for the step's clients (cli_tmpdir in its
 * pmixp_info.c), which is created in mpi_p_slurmstepd_prefork, between init_post_opt and user_init, where slurmstepd is
 * in the stage and /tmp is the job's. It is removed in mpi_fini, after exit, where slurmstepd is on the node and /tmp
 * is the node's.
 */
#ifndef GOJAIL_TMP_FILES_H
#define GOJAIL_TMP_FILES_H

#include <slurm/spank.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The directory of mpi/pmix. */
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

/* The cookies of srun --x11. */
struct x11 {
	char path[64]; /* "" if there is none */
	char cookies[4096];
	size_t length; /* of cookies */
};

/* Reads the file of the node with the rights of the effective uid, the user. */
void x11_read(struct x11 *x11, spank_t sp);

/* Writes the file in the jail as the user, unless another task of the job has. A failure is logged, and no fault. */
void x11_write(const struct x11 *x11);

#endif
