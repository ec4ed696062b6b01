/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/explain.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/printable.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Reports whether a path of the step's environment is in /tmp, as for who went there. */
static bool is_in_tmp(const char *path)
{
	return strncmp(path, "/tmp", 4) == 0 && (path[4] == '/' || path[4] == '\0');
}

/*
 * Slurm tells plugins no working directory. It goes to /tmp where that is missing, and where the user asks for that:
 * then both variables can name another directory, but the jail has that as a rule.
 */
void explain_directory(const struct step *step, spank_t sp)
{
	char path[PATH_MAX];

	if (!getcwd(path, sizeof(path)) || strcmp(path, "/tmp") != 0)
		return;
	if (spank_getenv(sp, "PWD", path, sizeof(path)) != ESPANK_SUCCESS || is_in_tmp(path) ||
	    spank_getenv(sp, "SLURM_SUBMIT_DIR", path, sizeof(path)) != ESPANK_SUCCESS || path[0] != '/' || is_in_tmp(path))
		return;
	scoped_fd at = open_in_root(step->sandbox.root, path, 0);
	if (at >= 0 || (errno != ENOENT && errno != ENOTDIR))
		return;
	make_printable(path);
	slurm_error("gojail: jail \"%s\" has no %.512s, from which the job was submitted: the step runs in /tmp; ask your administrator to mount "
		    "that directory in the jail, or give --chdir=DIR",
		    step->jail, path);
}

void explain_files(const struct step *step)
{
	slurm_error("gojail: Slurm looked for --output, --error and --input of the step in jail \"%s\", not on the node: the directory must exist "
		    "in the jail, in a data directory such as /home, or be /tmp, /var/tmp or /dev/shm; see: gojail check",
		    step->jail);
}
