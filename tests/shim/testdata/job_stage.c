/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a sandbox in a copy of a jail, runs the shell script of its argument in the jail's root as the jail's owner
 * does, in another mount namespace, and makes the job's stage; with the argument "spare" it runs the script when both
 * are begun, as in a spare that waits for a job. Prints the fault, or what the stage has in the files /tmp/whose,
 * /dev/shm/whose and /var/tmp/whose.
 */
#include "common/fd.h"
#include "launcher/assemble.h"
#include "launcher/job_stage.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(call) ((call) < 0 ? (perror(#call), exit(1)) : (void)0)

/* Runs the script in the jail's root in a child that stays in the namespace of its start, once the pipe ends. */
static pid_t start_owner(int wait, const char *script)
{
	pid_t child = fork();
	char none;

	if (child != 0)
		return child;
	MUST((int)read(wait, &none, 1));
	execl("/bin/sh", "sh", "-euc", script, (char *)NULL);
	_exit(127);
}

/* Lets the owner's script run, and waits for its end. */
static void run_owner(int begin, pid_t owner)
{
	int status;

	MUST((int)write(begin, "", 1));
	MUST(waitpid(owner, &status, 0));
	MUST(status == 0 ? 0 : -1);
}

static void write_file(const char *path, const char *text)
{
	scoped_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd >= 0)
		MUST((int)write(fd, text, strlen(text)));
}

static void print_file(const char *path)
{
	char text[32] = "-";
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		MUST((int)read(fd, text, sizeof(text) - 1));
	printf("%s ", text);
}

int main(int argc, char **argv)
{
	struct gojail_request request = {
		.nmounts = 3,
		.mounts = {
			{.how = GOJAIL_MOUNT_IN, .type = "devpts", .destination = "/dev/pts"},
			{.how = GOJAIL_MOUNT_JOB, .type = "tmpfs", .options = "mode=1777", .destination = "/tmp"},
			{.how = GOJAIL_MOUNT_JOB, .type = "tmpfs", .options = "mode=1777", .destination = "/dev/shm"}}};
	struct fault fault = {0};
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), begin[2];

	if (argc < 3)
		return 2;
	MUST(unshare(CLONE_NEWNS));
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	MUST(mount("none", argv[1], "tmpfs", 0, NULL));
	MUST(chdir(argv[1]));
	MUST(system("mkdir -p tmp dev run proc sys var/tmp other && echo -n jail | tee tmp/whose other/whose "
		    ">var/tmp/whose") == 0 ?
		     0 :
		     -1);
	MUST(mount("none", "dev", "tmpfs", 0, NULL));
	MUST(mount("none", "run", "tmpfs", 0, NULL));
	MUST(mount("none", "proc", "proc", 0, NULL));
	MUST(mount("none", "sys", "sysfs", 0, NULL));
	MUST(system("mkdir dev/shm dev/pts") == 0 ? 0 : -1);
	MUST(pipe2(begin, O_CLOEXEC));
	pid_t owner = start_owner(begin[0], argv[2]);
	/* The stage has the descriptor that it has in a zygote. */
	MUST(dup3(openat(proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC), 10, O_CLOEXEC));
	MUST(proc = fcntl(proc, F_DUPFD_CLOEXEC, 20));
	MUST(begin[1] = fcntl(begin[1], F_DUPFD_CLOEXEC, 20));
	MUST(dup3(10, GOJAIL_STAGE_FD, O_CLOEXEC));
	/* To return from the stage to a namespace leads to its root. */
	MUST(unshare(CLONE_NEWNS));
	MUST(chdir(argv[1]));
	MUST((int)syscall(SYS_pivot_root, ".", "."));
	MUST(umount2(".", MNT_DETACH));
	struct open_jail jail = {.proc = proc, .root = -1};
	const bool spare = argc == 4 && strcmp(argv[3], "spare") == 0;
	int stage = -1;

	jail.root = begin_assembly(&request, NULL, &fault);
	if (jail.root >= 0) {
		MUST(jail.mnt = openat(proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC));
	}
	if (!fault.text[0] && spare) {
		note_begun(jail.root, &fault);
		stage = begin_job_stage(&jail, &fault);
		run_owner(begin[1], owner);
		check_begun(&request, &fault);
	}
	if (!fault.text[0] && finish_assembly(jail.root, &request, NULL, &fault) == 0) {
		write_file("/tmp/whose", "job");
		write_file("/dev/shm/whose", "shm");
		if (!spare)
			run_owner(begin[1], owner);
		stage = finish_job_stage(&jail, may_hide_begun() ? -1 : stage, NULL, 0, &fault);
		if (stage >= 0) {
			MUST(setns(stage, CLONE_NEWNS));
			print_file("/tmp/whose");
			print_file("/dev/shm/whose");
			print_file("/var/tmp/whose");
		}
	}
	puts(fault.text);
	return 0;
}
