/* SPDX-License-Identifier: Apache-2.0 */
/* adoption.c: finds the job in whose cgroup a session is. */
#include "common/fd.h"
#include "common/record.h"
#include "session/jobs.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SLUID_LENGTH 14 /* 's' and 13 digits of Crockford's base 32 */

/* Finds "/SLUID/step_" in /proc/PID/cgroup. Returns the SLUID, or NULL. */
static const char *find_sluid(const char *cgroups)
{
	for (const char *step = strstr(cgroups, "/step_"); step; step = strstr(step + 1, "/step_")) {
		const char *at = step - SLUID_LENGTH;
		int digits = 1;

		if (at <= cgroups || at[-1] != '/' || at[0] != 's')
			continue;
		while (digits < SLUID_LENGTH &&
		       (isupper((unsigned char)at[digits]) || isdigit((unsigned char)at[digits])))
			digits++;
		if (digits == SLUID_LENGTH)
			return at;
	}
	return NULL;
}

/* The slurmstepd in the cgroups of a SLUID, and the number of its job. */
struct stepd {
	const char *sluid;
	char *job;
	size_t size;
};

/*
 * Reports whether a process is a slurmstepd of root's in the cgroups of that SLUID, and writes the number of its job.
 * The command line, which is in the memory of a process that may hang, is read of no process in other cgroups.
 */
static bool is_stepd_of(int process, void *wanted)
{
	const struct stepd *stepd = wanted;
	static const char title[] = "slurmstepd: ["; /* and JOB.STEP] */
	char text[16384];
	const char *other;
	struct stat st;

	if (fstat(process, &st) < 0 || st.st_uid != 0 || read_file(process, "cgroup", text, sizeof(text)) <= 0 ||
	    !(other = find_sluid(text)) || strncmp(other, stepd->sluid, SLUID_LENGTH) != 0)
		return false;
	if (read_file(process, "cmdline", text, sizeof(text)) <= 0 || strncmp(text, title, sizeof(title) - 1) != 0)
		return false;
	snprintf(stepd->job, stepd->size, "%.*s", (int)strspn(text + sizeof(title) - 1, "0123456789"),
		 text + sizeof(title) - 1);
	return true;
}

/* Writes the number of the job whose slurmstepd is in the cgroups of that SLUID. Reports whether there is one. */
static bool find_job_of_sluid(const char *sluid, char *job, size_t size)
{
	struct stepd stepd = {sluid, job, size};
	scoped_fd process = find_process(is_stepd_of, &stepd);

	return process >= 0;
}

bool adoption_find_job(char *job, size_t size)
{
	char text[16384];
	const char *at;

	if (read_file(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) <= 0)
		return false;
	at = strstr(text, "/job_");
	if (at) {
		snprintf(job, size, "%.*s", (int)strcspn(at + 5, "/\n"), at + 5);
		return true;
	}
	at = find_sluid(text);
	return at && find_job_of_sluid(at, job, size);
}
