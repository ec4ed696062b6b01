/* SPDX-License-Identifier: Apache-2.0 */
/*
 * release.h: which release of Slurm has loaded the plugin, and what differs between releases: one build serves all that
 * it knows.
 *
 * Slurm loads a SPANK plugin with its own major and minor only (_verify_syms in plugin.c). The plugins set their
 * plugin_version when they are loaded: to the release of the libslurm of this process, if they know it. Otherwise the
 * version stays 0, and Slurm refuses them.
 */
#ifndef GOJAIL_RELEASE_H
#define GOJAIL_RELEASE_H

#include <stdbool.h>
#include <stdint.h>

/* A release, with places in Slurm's structures, in bytes from their beginning: the headers know those of one release.
 */
struct release {
	uint32_t number; /* SLURM_VERSION_NUM(major, minor, 0) */
	uint16_t api;    /* API_CURRENT of libslurm */
	struct {
		uint16_t size, job, environment, env_size;
	} submission; /* job_desc_msg_t */
	struct {
		uint16_t size, job;
	} record;               /* slurm_job_info_t */
	uint16_t launch_params; /* in slurm_conf_t */
};

/* The release that has loaded the plugin, or NULL: then Slurm calls nothing of it. */
extern const struct release *slurm_release;

/* Accesses a member of a structure of Slurm, from its place. */
#define MEMBER(type, structure, place) (*(type *)((char *)(structure) + (place)))

/*
 * Reports whether job_desc_msg_t of this process's libslurm has the size that the table says: that of a Slurm with
 * another one, which somebody patched, is not to be written.
 */
bool release_fits(void);

/* Reports whether Slurm's release is this one or a newer one. */
bool is_release_from(uint8_t major, uint8_t minor);

#endif
