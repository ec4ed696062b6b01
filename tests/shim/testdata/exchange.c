/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a template and a sandbox of it, once undisturbed, and again for each system call on the way: before that call
 * the owner of the jail's root exchanges one of its directories, with the mount on it, for another, and three calls
 * later again. A sandbox must then be the same, or be refused. Prints what differs, and how often each was the case.
 */
#include "launcher/assemble.h"
#include "launcher/job_stage.h"
#include "launcher/remount.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(call) ((call) < 0 ? (perror(#call), exit(1)) : (void)0)
#define SHELL(script) MUST(system(script) == 0 ? 0 : -1)
#define CALLS 3 /* that an exchange lasts */

/* The calls between the first and the last mark are counted. */
static void mark(void) { syscall(SYS_getpgid, -99); }

static const char *dir;   /* the jail's root */
static int owners, jails; /* mount namespaces: the owner's has none of the jail's mounts */

static void make_jail(void)
{
	MUST(unshare(CLONE_NEWNS));
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	MUST(mount("none", dir, "tmpfs", 0, NULL));
	MUST(chdir(dir));
	SHELL("mkdir -p tmp var/tmp dev run proc sys dev.old/shm dev.old/pts dev.old/mqueue proc.old/irq "
	      "proc.old/sys/fs "
	      "sys.old/fs/cgroup sys.old/firmware run.old/munge run.old/planted && touch proc.old/version "
	      "dev.old/null");
	owners = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	MUST(unshare(CLONE_NEWNS));
	MUST(chdir(dir));
	MUST(mount("none", "dev", "tmpfs", 0, "mode=755"));
	MUST(mount("none", "run", "tmpfs", 0, "mode=755"));
	MUST(mount("none", "proc", "proc", 0, NULL));
	MUST(mount("none", "sys", "sysfs", 0, NULL));
	SHELL("mkdir -p dev/shm dev/pts dev/mqueue run/munge run/lock && touch dev/null && ln -s /proc/self/fd dev/fd");
	MUST(mount("/dev/null", "dev/null", NULL, MS_BIND, NULL));
	MUST(mount("none", "dev/shm", "tmpfs", MS_RDONLY, NULL));
	MUST(mount("none", "run/munge", "tmpfs", 0, NULL));
	MUST(mount("/dev/null", "proc/version", NULL, MS_BIND, NULL));
	MUST(mount("none", "proc/irq", "tmpfs", MS_RDONLY, NULL));
	MUST(mount("none", "proc/sys/fs", "tmpfs", MS_RDONLY, NULL));
	jails = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	MUST(setns(owners, CLONE_NEWNS));
	MUST(chdir(dir));
}

static void print_names(const char *path)
{
	DIR *list = opendir(path);

	for (struct dirent *entry; list && (entry = readdir(list));)
		printf("%s/%s\n", path, entry->d_name);
	if (list)
		closedir(list);
}

/* Prints the mounts of this namespace, each with the number of the one that it is on, and what /dev and /run have. */
static void print_view(int proc)
{
	FILE *file = fdopen(openat(proc, "self/mountinfo", O_RDONLY), "r");
	int ids[256] = {0}, count = 0, parent, on;
	char line[1024], root[256], at[256];

	while (file && count < 256 && fgets(line, sizeof(line), file) &&
	       sscanf(line, "%d %d %*s %255s %255s", &ids[count], &parent, root, at) == 4) {
		for (on = 0; on < count && ids[on] != parent;)
			on++;
		printf("%d on %d: %s %s %s", count++, on, root, at, strstr(line, " - "));
	}
	print_names("/dev");
	print_names("/run");
}

static void make_sandbox(void)
{
	static struct gojail_request request = {
		.nmounts = 8,
		.mounts = {
			{.how = GOJAIL_MOUNT_OVER, .type = "tmpfs", .options = "mode=755", .destination = "/run"},
			{.how = GOJAIL_MOUNT_OVER, .type = "proc", .destination = "/proc"},
			{.how = GOJAIL_MOUNT_OVER, .type = "tmpfs", .options = "mode=755", .destination = "/dev"},
			{.how = GOJAIL_MOUNT_IN, .type = "tmpfs", .destination = "/sys/fs/cgroup"},
			{.how = GOJAIL_MOUNT_IN, .type = "devpts", .destination = "/dev/pts"},
			{.how = GOJAIL_MOUNT_IN, .type = "mqueue", .destination = "/dev/mqueue"},
			{.how = GOJAIL_MOUNT_JOB, .type = "tmpfs", .options = "mode=1777", .destination = "/tmp"},
			{.how = GOJAIL_MOUNT_JOB, .type = "tmpfs", .options = "mode=1777", .destination = "/dev/shm"}}};
	struct open_jail jail = {.root = -1, .mnt = -1};
	struct fault fault = {0};
	int stage = -1;

	MUST(setns(jails, CLONE_NEWNS));
	MUST(jail.proc = fcntl(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), F_DUPFD_CLOEXEC, 30));
	MUST(dup3(openat(jail.proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC), GOJAIL_STAGE_FD, O_CLOEXEC));
	MUST(unshare(CLONE_NEWNS));
	MUST(chdir(dir));
	MUST((int)syscall(SYS_pivot_root, ".", "."));
	MUST(umount2(".", MNT_DETACH));
	umask(0);
	mark();
	if (find_template_mounts(jail.proc, &fault) == 0)
		jail.root = begin_assembly(&request, NULL, &fault);
	if (jail.root >= 0)
		jail.mnt = openat(jail.proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (!fault.text[0] && note_begun(jail.root, &fault) == 0)
		stage = begin_job_stage(&jail, &fault);
	if (!fault.text[0] && is_at_root() && check_begun(&request, &fault) == 0 &&
	    finish_assembly(jail.root, &request, NULL, &fault) == 0)
		stage = finish_job_stage(&jail, may_hide_begun() ? -1 : stage, NULL, 0, &fault);
	mark();
	if (fault.text[0] || stage < 0)
		printf("refused %s\n", fault.text);
	else if (setns(jail.mnt, CLONE_NEWNS) == 0)
		print_view(jail.proc);
	fflush(stdout);
	_exit(0);
}

/* Exchanges a directory of the jail's root, such as "dev", for "dev.old", as its owner does. */
static void exchange(const char *name)
{
	char old[32];

	snprintf(old, sizeof(old), "%s.old", name);
	MUST((int)syscall(SYS_renameat2, AT_FDCWD, name, AT_FDCWD, old, RENAME_EXCHANGE));
}

/* Lets a child make a sandbox, with an exchange before its call of that number. Returns the number of its calls. */
static int trace(pid_t child, const char *name, int begin)
{
	struct __ptrace_syscall_info info;
	int status, marks = 0, count = 0;
	bool exchanged = false;

	MUST(waitpid(child, &status, 0));
	MUST((int)ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	while (ptrace(PTRACE_SYSCALL, child, 0, 0) == 0 && waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) < 0 ||
		    info.op != PTRACE_SYSCALL_INFO_ENTRY)
			continue;
		if (info.entry.nr == SYS_getpgid && (int)info.entry.args[0] == -99)
			marks++;
		count += marks == 1;
		if (count == begin + CALLS * exchanged || (exchanged && marks > 1)) {
			exchange(name);
			begin = exchanged ? -1 : begin;
			exchanged = !exchanged;
		}
	}
	if (exchanged)
		exchange(name);
	return count;
}

/* Makes a sandbox, and reads what it prints. Returns the number of its calls. */
static int run(const char *name, int begin, char *out, size_t size)
{
	FILE *file = tmpfile();
	int calls;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		MUST(dup2(fileno(file), 1));
		MUST((int)ptrace(PTRACE_TRACEME, 0, 0, 0));
		raise(SIGSTOP);
		make_sandbox();
	}
	calls = trace(child, name, begin);
	rewind(file);
	out[fread(out, 1, size - 1, file)] = '\0';
	fclose(file);
	return calls;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"dev", "proc", "sys", "run"};
	static char undisturbed[1 << 14], out[1 << 14];
	int same = 0, refused = 0;

	if (argc != 2)
		return 2;
	dir = argv[1];
	make_jail();
	const int calls = run("", -1, undisturbed, sizeof(undisturbed));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (int begin = 1; begin <= calls; begin++) {
			run(names[i], begin, out, sizeof(out));
			if (strcmp(out, undisturbed) == 0)
				same++;
			else if (strncmp(out, "refused", 7) == 0)
				refused++;
			else
				printf("/%s exchanged at call %d:\n%s", names[i], begin, out);
		}
	printf("%sof %d: same %d, refused %d\n", undisturbed, 4 * calls, same, refused);
	return 0;
}
