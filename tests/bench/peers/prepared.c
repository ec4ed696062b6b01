/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepared.c: a SPANK plugin that moves slurmstepd into a tree that was mounted
 * beforehand, before anything else happens in the step. Argument: the tree.
 */
#include <errno.h>
#include <sched.h>
#include <slurm/spank.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

SPANK_PLUGIN(prepared, 1)

static const char *enter(const char *tree)
{
	if (unshare(CLONE_NEWNS) < 0)
		return "unshare";
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return "make / a slave";
	if (chdir(tree) < 0)
		return "chdir";
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return "pivot_root";
	if (umount2(".", MNT_DETACH) < 0)
		return "umount the old root";
	if (chdir("/") < 0)
		return "chdir /";
	if (umount2("/proc", MNT_DETACH) < 0)
		return "umount /proc";
	if (mount("proc", "/proc", "proc", 0, NULL) < 0)
		return "mount /proc";
	return NULL;
}

int slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
	const char *failed;

	(void)sp;
	if (spank_context() != S_CTX_REMOTE)
		return 0;
	failed = argc == 1 ? enter(argv[0]) : "argument missing";
	if (!failed)
		return 0;
	slurm_error("prepared: %s: %s", failed, strerror(errno));
	return -1;
}
