/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inherit.c: what a process passes on to what it starts (fork(2), execve(2)).
 *
 *   inherit as UID KEYRING PROGRAM...   sets each attribute to a value that is not the default, writes the number of
 * its session keyring to the file KEYRING, and executes the program as that user inherit read PID prints the attributes
 * of a process, one on a line
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#endif

static const struct {
	const char *name;
	int kind;
	rlim_t soft; /* enough to start a process, also a launcher that may not raise it */
	rlim_t hard;
} limits[] = {
	{"CPU", RLIMIT_CPU, 50, RLIM_INFINITY},
	{"FSIZE", RLIMIT_FSIZE, 1 << 30, RLIM_INFINITY},
	{"DATA", RLIMIT_DATA, 8ul << 30, RLIM_INFINITY},
	{"STACK", RLIMIT_STACK, 1 << 20, 64 << 20},
	{"CORE", RLIMIT_CORE, 1 << 20, 2 << 20},
	{"RSS", RLIMIT_RSS, 0, 0},
	{"NPROC", RLIMIT_NPROC, 500, 500},
	{"NOFILE", RLIMIT_NOFILE, 300, 600},
	{"MEMLOCK", RLIMIT_MEMLOCK, 0, 0},
	{"AS", RLIMIT_AS, 8ul << 30, RLIM_INFINITY},
	{"LOCKS", RLIMIT_LOCKS, 0, 0},
	{"SIGPENDING", RLIMIT_SIGPENDING, 400,
	 400}, /* with 0, slurmd from 24.11 on does not get up (timer_create(2)) */
	{"MSGQUEUE", RLIMIT_MSGQUEUE, 0, 0},
	{"NICE", RLIMIT_NICE, 0, 0},
	{"RTPRIO", RLIMIT_RTPRIO, 0, 0},
	{"RTTIME", RLIMIT_RTTIME, 1, 1},
};

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0666);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "inherit: %s: %s\n", path, strerror(errno));
	close(fd);
}

/* Joins a new session keyring with a key of the user's, which anybody may see in /proc/keys. */
static void set_keyring(const char *file)
{
	enum { JOIN = 1, SETPERM = 5, SET_REQKEY = 14, SESSION = -3, TO_SESSION = 3, ALL = 0x3f3f3f3f }; /* keyctl(2) */
	long keyring = syscall(SYS_keyctl, JOIN, NULL);
	char text[32];

	syscall(SYS_add_key, "user", "gojail-inherit", "secret", 6, SESSION);
	syscall(SYS_keyctl, SETPERM, keyring, ALL);
	syscall(SYS_keyctl, SET_REQKEY, TO_SESSION);
	snprintf(text, sizeof(text), "%08lx\n", keyring);
	put(file, text);
}

static void set_inheritable(uint32_t set)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	syscall(SYS_capget, &header, data);
	data[0].inheritable = set;
	if (syscall(SYS_capset, &header, data) < 0)
		perror("inherit: capset");
}

static void set_limits(void)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit limit = {limits[i].soft, limits[i].hard}, have;

		getrlimit(limits[i].kind, &have);
		/* Only where the launcher can raise them (CAP_SYS_RESOURCE, 24). */
		if (limit.rlim_max > have.rlim_max || prctl(PR_CAPBSET_READ, 24, 0, 0, 0) != 1)
			limit.rlim_max = have.rlim_max;
		if (setrlimit(limits[i].kind, &limit) < 0)
			perror(limits[i].name);
	}
}

static void set_all(uid_t uid, const char *keyring)
{
	static const struct sched_param none;
	const unsigned long first = 1;
	cpu_set_t one;
	char text[16];

	snprintf(text, sizeof(text), "%u", uid ? uid : 4321);
	put("/proc/self/loginuid", text);
	put("/proc/self/oom_score_adj", "500");
	put("/proc/self/coredump_filter", "0x7f");
	set_inheritable(1u << CAP_NET_RAW);
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0); /* CAP_SYS_RESOURCE */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0);
	prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);
	prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0);
	prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_DISABLE, 0, 0);
	prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_INDIRECT_BRANCH, PR_SPEC_DISABLE, 0, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	prctl(PR_SET_TIMERSLACK, 7000000, 0, 0, 0);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	syscall(SYS_set_mempolicy, 2, &first, 2); /* MPOL_BIND */
	syscall(SYS_ioprio_set, 1, 0, 3 << 13);   /* idle */
	sched_setscheduler(0, SCHED_BATCH, &none);
	setpriority(PRIO_PROCESS, 0, 15);
	personality(UNAME26);
	umask(0);
	for (int i = 1; i < 32; i++)
		if (i != SIGCHLD)
			signal(i, SIG_IGN);
	set_limits();
	set_keyring(keyring);
}

static char *read_file(const char *pid, const char *name)
{
	static char text[65536];
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	fd = open(path, O_RDONLY);
	got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got < 0 ? 0 : got] = '\0';
	text[strcspn(text, "\n")] = got > 0 && strchr(text, '\n') ? '\n' : '\0';
	return text;
}

static void print_file(const char *pid, const char *name)
{
	char *text = read_file(pid, name);

	text[strcspn(text, "\n")] = '\0';
	printf("%s %s\n", name, text);
}

static void print_status(const char *pid)
{
	static const char *const names[] = {"Umask",
					    "SigBlk",
					    "SigIgn",
					    "CapInh",
					    "CapAmb",
					    "THP_enabled",
					    "Speculation_Store_Bypass",
					    "SpeculationIndirectBranch"};
	char *text = read_file(pid, "status"), *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (strncmp(line, names[i], strlen(names[i])) == 0)
				printf("%s %s\n", names[i], strchr(line, '\t') + 1);
}

/*
 * Prints the controlling terminal of a process, and its flags that are inherited: PF_MCE_PROCESS, PF_MEMALLOC_NOIO and
 * PF_LOCAL_THROTTLE of the kernel's sched.h.
 */
static void print_flags(const char *pid)
{
	int terminal = -1;
	unsigned flags = 0;

	sscanf(strrchr(read_file(pid, "stat"), ')'), ") %*c %*d %*d %*d %d %*d %u", &terminal, &flags);
	printf("terminal %d\n", terminal);
	printf("flags %08x\n", flags & (0x80 | 0x00080000 | 0x00100000));
}

static void print_scheduling(const char *pid)
{
	int process = strcmp(pid, "self") ? atoi(pid) : 0;
	cpu_set_t cpus[8];

	memset(cpus, 0, sizeof(cpus));
	sched_getaffinity(process, sizeof(cpus), cpus);
	printf("nice %d\npolicy %d\n", getpriority(PRIO_PROCESS, (id_t)process), sched_getscheduler(process));
	printf("cpus %d\nio %ld\n", CPU_COUNT_S(sizeof(cpus), cpus), syscall(SYS_ioprio_get, 1, process));
}

static void print_all(const char *pid)
{
	char policy[32] = "";

	print_status(pid);
	print_flags(pid);
	print_scheduling(pid);
	print_file(pid, "timerslack_ns");
	print_file(pid, "personality");
	print_file(pid, "oom_score_adj");
	print_file(pid, "coredump_filter");
	print_file(pid, "loginuid");
	print_file(pid, "sessionid");
	sscanf(read_file(pid, "numa_maps"), "%*s %31s", policy);
	printf("mempolicy %s\n", policy);
	printf("merge %s\n", strstr(read_file(pid, "ksm_stat"), "ksm_merge_any: yes") ? "yes" : "no");
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit has = {0, 0};

		prlimit(strcmp(pid, "self") ? atoi(pid) : 0, limits[i].kind, NULL, &has);
		printf("%s %ld:%ld\n", limits[i].name, (long)has.rlim_cur, (long)has.rlim_max);
	}
}

int main(int argc, char **argv)
{
	uid_t uid;

	if (argc == 3 && strcmp(argv[1], "read") == 0) {
		print_all(argv[2]);
		return 0;
	}
	if (argc < 5 || strcmp(argv[1], "as"))
		return 2;
	uid = (uid_t)atoi(argv[2]);
	set_all(uid, argv[3]);
	if (uid && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
		return 3;
	execvp(argv[4], argv + 4);
	return 4;
}
