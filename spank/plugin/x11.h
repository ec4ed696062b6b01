/* SPDX-License-Identifier: Apache-2.0 */
/* x11.h: the cookies of srun --x11, which Slurm keeps in a file of the node's /tmp. */
#ifndef GOJAIL_X11_H
#define GOJAIL_X11_H

#include <slurm/spank.h>
#include <stddef.h>

struct x11 {
	char path[64]; /* "" where there is none */
	char cookies[4096];
	size_t length; /* of cookies */
};

/* Reads the file of the node with the rights of the effective uid, the user. */
void x11_read(struct x11 *x11, spank_t sp);

/* Writes the file in the jail as the user, unless another task of the job has. A failure is logged, and no fault. */
void x11_write(const struct x11 *x11);

#endif
