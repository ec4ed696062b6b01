/* SPDX-License-Identifier: Apache-2.0 */
/* x11.h: the cookies of srun --x11, which Slurm keeps in a file of the node's /tmp. */
#ifndef GOJAIL_X11_H
#define GOJAIL_X11_H

#include <slurm/spank.h>
#include <stddef.h>

struct x11 {
	char path[64]; /* "" where there is nothing to bring */
	char cookies[4096];
	size_t length; /* of cookies */
};

/* Reads the file with the rights of euid, the user, where the node's /tmp is to be seen. */
void x11_read(struct x11 *x11, spank_t sp);

/* Writes it as the user where the jail's /tmp is to be seen; the first task of a job does. Never fatal. */
void x11_write(const struct x11 *x11);

#endif
