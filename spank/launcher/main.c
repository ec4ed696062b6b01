/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c: the single-threaded process between slurmstepd, which must not see
 * Go's threads, and libgojail.so, which has them. Verbs: include/gojail.h.
 */
#include "common/clock.h"
#include "common/fault.h"
#include "common/fd.h"
#include "common/job.h"
#include "common/job_mounts.h"
#include "common/launch.h"
#include "common/lock.h"
#include "common/node.h"
#include "common/record.h"
#include "common/site.h"
#include "common/syscalls.h"
#include "common/template.h"
#include "common/zygote_client.h"
#include "launcher/remount.h"
#include "launcher/userns.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

static struct node node;
static struct gojail_call *call; /* shared with the children that load the library */
static int64_t until;

static void say(const char *format, const char *text)
{
	dprintf(GOJAIL_REPLY_FD, format, text);
}

static const char *word(const char *name)
{
	size_t length = strlen(name);

	for (int i = 1; i < call->argc; i++)
		if (strncmp(call->argv[i], name, length) == 0 && call->argv[i][length] == '=')
			return call->argv[i] + length + 1;
	return "";
}

/*
 * Slurm kills, or waits for, what it finds in a step's cgroup, and limits its
 * memory and devices; what outlives a step must not be there (26.05
 * drains the node for it). Both versions of cgroups; failing is harmless.
 */
static void leave_step(void)
{
	static const char *const controllers[] = {"freezer", "memory", "devices", "cpuset", "cpu",
						  "cpuacct", "pids", "blkio", "systemd"};
	char path[128];
	struct stat st;
	/* Without it the kernel may choose a job's holder before the job. */
	scoped_fd oom = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (oom >= 0 && write(oom, "-1000", 5) < 0)
		close_fd(&oom);
	if (stat("/sys/fs/cgroup/cgroup.procs", &st) == 0) {
		mkdir("/sys/fs/cgroup/gojail", 0755);
		scoped_fd fd = open("/sys/fs/cgroup/gojail/cgroup.procs", O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, "0", 1) < 0)
			return;
		return;
	}
	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/cgroup.procs", controllers[i]);
		scoped_fd fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, "0", 1) < 0)
			continue;
	}
}

/* Goes on as a child of init: no step waits for it, and none kills it. */
static void detach(void)
{
	pid_t child = fork();

	if (child < 0) {
		say("error cannot fork: %s\n", strerror(errno));
		_exit(1);
	}
	if (child > 0) {
		dprintf(GOJAIL_REPLY_FD, "pid %d %" PRIu64 "\n", (int)child, process_start(child));
		_exit(0);
	}
	setsid();
}

/* Loads the library and makes the one call. In a child, or as the last thing done. */
static int call_library(const char *verb)
{
	char path[GOJAIL_PATH_MAX + 16];
	int (*gojail_call)(struct gojail_call *);
	void *library;

	snprintf(path, sizeof(path), "%s/libgojail.so", node.libdir);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	*(void **)&gojail_call = library ? dlsym(library, GOJAIL_CALL_SYMBOL) : NULL;
	if (!gojail_call) {
		snprintf(call->text, sizeof(call->text), "cannot load libgojail.so: %.800s; "
			 "install gojail again on this node", dlerror());
		return -1;
	}
	call->argv[0] = (char *)(uintptr_t)verb;
	call->version = GOJAIL_VERSION;
	return gojail_call(call);
}

/* The call in a child of its own: it may hang in storage, die, or start threads. */
static int call_in_child(const char *verb, struct fault *fault)
{
	struct pollfd wait;
	int status, ready;
	pid_t child;

	call->text[0] = '\0';
	child = fork();
	if (child < 0)
		return fault_set(fault, "cannot fork: %s", strerror(errno));
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The reply is this process's to give; Go must not keep the pipe open. */
		close(GOJAIL_REPLY_FD);
		_exit(call_library(verb) == 0 ? 0 : 1);
	}
	scoped_fd pidfd = k_pidfd_open(child);
	wait = (struct pollfd){.fd = pidfd, .events = POLLIN};
	do
		ready = poll(&wait, 1, clock_left(until));
	while (ready < 0 && errno == EINTR);
	if (ready <= 0) {
		kill(child, SIGKILL);
		return word("jail")[0] ? fault_set(fault, "preparing jail \"%s\" took longer than the deadline; does its storage "
						   "answer? See: gojail check", word("jail")) :
			fault_set(fault, "what jobs left on this node was not removed before the deadline; run: gojail sweep");
	}
	if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	call->text[sizeof(call->text) - 1] = '\0';
	if (call->text[0])
		return fault_set(fault, "%s", call->text);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return fault_set(fault, "%s/libgojail.so was killed at its work; was the node out of memory? Try again",
				 node.libdir);
	if (WIFSIGNALED(status))
		return fault_set(fault, "%s/libgojail.so died of signal %d (%s); install gojail again on this node",
				 node.libdir, WTERMSIG(status), strsignal(WTERMSIG(status)));
	return fault_set(fault, "%s/libgojail.so failed without a message", node.libdir);
}

/* A mount namespace with that view in it; this process is inside afterwards. */
static int make_view(const char *verb, struct fault *fault)
{
	if (unshare(CLONE_NEWNS) < 0)
		return fault_set(fault, "cannot make a mount namespace: %s", strerror(errno));
	return call_in_child(verb, fault);
}

static int assemble_template(struct fault *fault)
{
	scoped_fd host = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	int stage;

	if (make_view("stage", fault) < 0)
		return -1;
	stage = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (host < 0 || stage < 0 || setns(host, CLONE_NEWNS) < 0)
		return fault_set(fault, "cannot leave the stage: %s", strerror(errno));
	if (make_view("jail", fault) < 0)
		return -1;
	return stage;
}

/* Of the jail, whose owner may have put something else there. */
static int open_null(struct fault *fault)
{
	struct stat st;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (null >= 0 && fstat(null, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		return null;
	close_fd(&null);
	return fault_set(fault, "the jail has no /dev/null");
}

#define FIRST_FREE_FD 16 /* above those with a meaning */

static int template(struct fault *fault)
{
	struct record zygote = {.pid = getpid(), .start = process_start(getpid())};
	int listener, lock, stage, null, reply, proc;

	int dir = template_dir(&node, word("jail"), fault);
	if (dir < 0)
		return -1;
	lock = lock_until(dir, "lock", until, "the template of the jail (does its storage answer?)", fault);
	if (lock < 0)
		return -1;
	struct record other = {0};
	if (record_find(dir, "zygote", &other) == 0 && strcmp(other.key, word("key")) == 0)
		return 0; /* another launcher was faster */
	snprintf(zygote.key, sizeof(zygote.key), "%s", word("key"));
	listener = zygote_listen(dir, fault);
	if (listener < 0)
		return -1;
	proc = proc_open(fault);
	stage = proc < 0 ? -1 : assemble_template(fault);
	if (stage < 0 || kept_find(proc, fault) < 0)
		return -1;
	null = open_null(fault);
	if (null < 0)
		return -1;
	/* The stage has its number before anybody reads the record; the lock stays with its copy. */
	lock = fcntl(lock, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	dir = fcntl(dir, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	reply = fcntl(GOJAIL_REPLY_FD, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	stage = fcntl(stage, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	listener = fcntl(listener, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	null = fcntl(null, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	proc = fcntl(proc, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	if (proc < 0 || lock < 0 || dir < 0 || reply < 0 || stage < 0 || listener < 0 || null < 0 ||
	    dup3(stage, GOJAIL_STAGE_FD, O_CLOEXEC) < 0 || dup3(listener, ZYGOTE_SOCKET_FD, O_CLOEXEC) < 0 ||
	    dup3(proc, ZYGOTE_PROC_FD, O_CLOEXEC) < 0)
		fault_set(fault, "cannot keep the zygote's descriptors: %s", strerror(errno));
	if (fault->text[0] || record_write(dir, "zygote", &zygote, fault) < 0) {
		dup2(reply, GOJAIL_REPLY_FD);
		return -1;
	}
	record_end(&other, 0); /* the one of the old configuration; its holders live on */
	dprintf(reply, "ok\n");
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	/* Exactly the stage, the socket and the node's /proc stay open. */
	syscall(SYS_close_range, ZYGOTE_PROC_FD + 1, ~0u, 0);
	prctl(PR_SET_NAME, "gojail-zygote");
	zygote_serve();
}

/* One more word for the library's next calls. */
static int add_word(const char *name, int value, struct fault *fault)
{
	static char words[3][32];
	static char *argv[LAUNCH_WORDS_MAX + 4];
	static int added;

	if (added == 3 || call->argc > LAUNCH_WORDS_MAX + added)
		return fault_set(fault, "sandbox: more than %d words", LAUNCH_WORDS_MAX);
	for (int i = 0; call->argv != argv && i < call->argc; i++)
		argv[i] = call->argv[i];
	snprintf(words[added], sizeof(words[added]), "%s=%d", name, value);
	argv[call->argc++] = words[added++];
	call->argv = argv;
	return 0;
}

/* The user namespaces of --jail-root=range. */
struct range {
	int tasks; /* of the tasks */
	int data;  /* for the ids of data; no process is in it */
	char root[32]; /* "UID GID" on the node of root in tasks */
};

/*
 * --jail-root=range: 0 and up are the user's range of /etc/subuid on the tasks' side,
 * and 0 and up in the jail's root on the disk's. In data, and of the batch script, the
 * user's own id becomes root, and no other id means anybody.
 */
static int make_range(const struct wish *wish, struct range *range, struct fault *fault)
{
	struct idmap users = {0, 0, 0}, groups = {0, 0, 0};
	struct idmap user = {wish->user.uid, 0, 1}, group = {wish->user.gid, 0, 1};
	scoped_fd proc = proc_open(fault);

	*range = (struct range){.tasks = -1, .data = -1};
	if (proc < 0)
		return -1;
	if (call_library("ids") < 0)
		return fault_set(fault, "%s", call->text);
	if (sscanf(call->text, "%u %u %u", &users.outside, &groups.outside, &users.count) != 3)
		return fault_set(fault, "libgojail.so gave no ids; install gojail again on this node");
	groups.count = users.count;
	user.outside = users.outside;
	group.outside = groups.outside;
	snprintf(range->root, sizeof(range->root), "%u %u", users.outside, groups.outside);
	range->tasks = userns_make(proc, wish->user.uid, &users, &groups, true, fault);
	range->data = range->tasks < 0 ? -1 : userns_make(proc, 0, &user, &group, true, fault);
	return range->data < 0 ? -1 : 0;
}

/* Maps the tree of the batch script: Slurm's file is the user's, who is root in the jail. */
static int map_script(const struct wish *wish, int tree, int data, struct fault *fault)
{
	if (k_map_ids(tree, data) == 0)
		return 0;
	return fault_set(fault, "--jail-root=range: the file system of %s cannot map ids (%s); give --jail-root=range to "
			 "srun inside the job, or ask your administrator for ext4, xfs or btrfs there", wish->script, strerror(errno));
}

/* Maps the script for a sandbox that is there. */
static int range_script(const struct wish *wish, int tree, struct fault *fault)
{
	struct range range;

	if (!wish_is_range(wish))
		return 0;
	return make_range(wish, &range, fault) < 0 ? -1 : map_script(wish, tree, range.data, fault);
}

/* Makes the trees of --jail-root=range; 0 or -1. The user namespace for the tasks is range->tasks. */
static int range_trees(const struct wish *wish, const struct gojail_tree *trees, uint32_t count, struct range *range, struct fault *fault)
{
	if (make_range(wish, range, fault) < 0)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		if ((trees[i].flags & GOJAIL_TREE_ALONE) && map_script(wish, trees[i].fd, range->data, fault) < 0)
			return -1;
	if (add_word("range", range->tasks, fault) < 0 || add_word("data", range->data, fault) < 0)
		return -1;
	call->ntrees = 0;
	if (call_library("range") < 0)
		return fault_set(fault, "%s", call->text);
	return 0;
}

static int user_trees(const struct wish *wish, struct gojail_tree *trees, uint32_t *count, struct fault *fault)
{
	if (wish_is_range(wish)) {
		struct range range;

		if (range_trees(wish, trees, *count, &range, fault) < 0 ||
		    trees_add(trees, count, range.tasks, range.root, GOJAIL_TREE_USER, fault) < 0)
			return -1;
		for (uint32_t i = 0; i < call->ntrees && i < GOJAIL_TREES_MAX; i++)
			if (trees_add(trees, count, call->trees[i].fd, call->trees[i].destination, call->trees[i].flags, fault) < 0)
				return -1;
	}
	if (!wish->mounts)
		return 0;
	call->ntrees = 0;
	if (call_library("mounts") < 0)
		return fault_set(fault, "%s", call->text);
	for (uint32_t i = 0; i < call->ntrees && i < GOJAIL_TREES_MAX; i++) {
		if (trees_add(trees, count, call->trees[i].fd, call->trees[i].destination,
			      call->trees[i].flags | GOJAIL_TREE_EXACT, fault) < 0)
			return -1;
	}
	return 0;
}

/* In this process, as user_trees: a child of one that has Go's threads could not call it. */
static int attach_net(const struct record *holder, struct fault *fault)
{
	if (add_word("holder", (int)holder->pid, fault) < 0)
		return -1;
	return call_library("net") < 0 ? fault_set(fault, "%s", call->text) : 0;
}

/*
 * Who asked for a sandbox may be killed meanwhile, and the job's end come and go before it is there: nobody
 * would end it. `gojail run` does not say who it is: the thread that forked may end before the process.
 */
static int end_with_parent(struct fault *fault)
{
	pid_t parent = (pid_t)atoi(word("parent"));

	if (parent && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		return fault_set(fault, "who asked for the sandbox has ended");
	return 0;
}

static int sandbox(struct fault *fault)
{
	static const struct sandbox_go go = {.trees = user_trees, .net = attach_net, .script = range_script};
	static gid_t groups[65536];
	struct sandbox built = SANDBOX_NONE;
	struct wish wish = {.mounts = word("mounts")[0] ? word("mounts") : NULL,
			    .net = word("net")[0] ? word("net") : NULL,
			    .root = word("root")[0] ? word("root") : NULL};
	struct site site = {0};
	struct jail jail;
	char *list = (char *)(uintptr_t)word("groups");

	snprintf(wish.job, sizeof(wish.job), "%s", word("job"));
	snprintf(wish.script, sizeof(wish.script), "%s", word("script"));
	wish.user = (struct user){.uid = (uid_t)strtoul(word("uid"), NULL, 10),
				  .gid = (gid_t)strtoul(word("gid"), NULL, 10), .groups = groups};
	while (*list && wish.user.ngroups < (int)(sizeof(groups) / sizeof(groups[0]))) {
		groups[wish.user.ngroups++] = (gid_t)strtoul(list, &list, 10);
		list += *list == ',';
	}
	if (end_with_parent(fault) < 0)
		return -1;
	if (!wish.job[0] || !word("uid")[0] || !word("gid")[0])
		return fault_set(fault, "sandbox needs job=, uid= and gid=");
	if (site_open(&site, &node, fault) < 0 ||
	    site_jail(&site, word("jail"), &wish.user, &jail, fault) < 0)
		return -1;
	return sandbox_build(&built, &node, &site, &jail, &wish, &go, until, fault);
}

/* Nobody reads the reply of these. */
static bool is_detached(const char *verb)
{
	return strcmp(verb, "boot") == 0 || strcmp(verb, "clean") == 0;
}

/* Leaves CPU and disk to the jobs: ioprio_set(2), class 3 is idle. */
static void step_back(void)
{
	enum { OF_PROCESS = 1, IDLE = 3 << 13 };

	setpriority(PRIO_PROCESS, 0, 19);
	syscall(SYS_ioprio_set, OF_PROCESS, 0, IDLE);
}

static int run(const char *verb, struct fault *fault)
{
	leave_step();
	if (strcmp(verb, "template") == 0) {
		detach();
		return template(fault);
	}
	if (is_detached(verb))
		detach();
	if (strcmp(verb, "clean") == 0)
		step_back();
	if (strcmp(verb, "sandbox") == 0)
		return sandbox(fault);
	return call_in_child(verb, fault);
}

static int locate(char **argv)
{
	ssize_t length = readlink("/proc/self/exe", node.libdir, sizeof(node.libdir) - 1);
	char *slash;

	if (length <= 0)
		return -1;
	node.libdir[length] = '\0';
	slash = strrchr(node.libdir, '/');
	if (slash)
		*slash = '\0';
	call = mmap(NULL, sizeof(*call), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (call == MAP_FAILED)
		return -1;
	for (call->argv = argv + 1; call->argv[call->argc];)
		call->argc++;
	return 0;
}

int main(int argc, char **argv)
{
	struct fault fault = {0};
	int deadline;

	if (argc < 2 || strchr(argv[1], '=') || argv[1][0] == '-') {
		fprintf(stderr, "usage: gojail-launcher site|template|sandbox|epilog|clean|boot [name=value]...\n"
				"It is started by the plugin and by gojail, not by people.\n");
		return 2;
	}
	if (fcntl(GOJAIL_REPLY_FD, F_GETFD) < 0)
		dup2(STDERR_FILENO, GOJAIL_REPLY_FD); /* started by hand */
	if (locate(argv) < 0) {
		say("error cannot find out where gojail-launcher is: %s\n", strerror(errno));
		return 1;
	}
	umask(022);
	if (chdir("/") < 0)
		return 1;
	deadline = atoi(word("deadline"));
	until = clock_ms() + (deadline > 0 ? deadline : GOJAIL_DEFAULT_DEADLINE_MS);
	snprintf(node.state, sizeof(node.state), "%s", *word("state") ? word("state") : GOJAIL_DEFAULT_STATE);
	snprintf(node.config, sizeof(node.config), "%s", *word("config") ? word("config") : GOJAIL_DEFAULT_CONFIG);
	snprintf(node.name, sizeof(node.name), "%s", word("node"));
	if (run(argv[1], &fault) < 0) {
		say("error %s\n", fault.text);
		if (is_detached(argv[1]))
			syslog(LOG_ERR, "gojail: %s", fault.text);
		return 1;
	}
	say("ok\n", "");
	return 0;
}
