/* SPDX-License-Identifier: Apache-2.0 */
/*
 * micro.c: measures the parts of a launch, with gojail's own code (spank/) and
 * without Slurm, and the system calls that dominate them.
 *
 *   micro LIBDIR CONFIG STATE NODE JAIL COUNT
 *
 * Prints a line for each: a name, then microseconds, one figure per repetition.
 * As root in a mount namespace of its own; leaves a zygote and its state.
 */
#include "common/clock.h"
#include "common/fd.h"
#include "common/confine.h"
#include "plugin/epilog.h"
#include "common/syscalls.h"
#include "common/launch.h"
#include "common/record.h"
#include "common/job.h"
#include "common/site.h"
#include "common/zygote_client.h"
#include "common/inside.h"
#include "plugin/stage_window.h"
#include "release/release.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Slurm's log. */
void slurm_error(const char *format, ...) { (void)format; }
bool is_release_from(uint8_t major, uint8_t minor) { return major > 0 && minor > 0; }

static struct node node;
static struct jail jail;
static struct site site;
static struct confine confine;
static const char *wanted; /* the jail's name */
static int count;
static double *in_child; /* shared with a child, which measures its own time */
static const struct user root_user = {0};

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void check(int result, const char *what, const struct fault *fault)
{
	if (result >= 0)
		return;
	fprintf(stderr, "micro: %s: %s\n", what, fault && fault->text[0] ? fault->text : strerror(errno));
	exit(1);
}

static int64_t soon(void) { return clock_ms() + 10000; }

/* A repetition: prepares, measures one operation, and cleans up. Returns its time. */
typedef double (*part)(int i);

static void repeat(const char *name, part part, int times)
{
	printf("%s", name);
	for (int i = 0; i < times; i++)
		printf(" %.1f", part(i));
	printf("\n");
	fflush(stdout);
}

static struct sandbox_spec job(int i)
{
	struct sandbox_spec spec = {.user = root_user};

	snprintf(spec.job, sizeof(spec.job), "%d", 1000000 + i);
	return spec;
}

static double lookup(int i)
{
	struct fault fault = {0};
	double begin = now_us();

	(void)i;
	check(site_open(&site, &node, &fault), "site", &fault);
	check(site_find_jail(&site, wanted, &root_user, &jail, &fault), "jail", &fault);
	begin = now_us() - begin;
	site_close(&site);
	return begin;
}

static double make_template(int i)
{
	struct fault fault = {0};
	struct record zygote;
	double begin;

	(void)i;
	if (zygote_find(&node, jail.name, &zygote) == 0)
		record_kill(&zygote, 0);
	while (zygote_find(&node, jail.name, &zygote) == 0)
		clock_pause_ms(1);
	begin = now_us();
	check(zygote_find_or_start(&node, &jail, soon(), &zygote, &fault), "template", &fault);
	return now_us() - begin;
}

static double build(int i)
{
	struct sandbox sandbox = SANDBOX_NONE;
	struct fault fault = {0};
	struct sandbox_spec spec = job(i);
	double begin = now_us();

	check(sandbox_open(&sandbox, &node, &site, &jail, &spec, &fault), "sandbox", &fault);
	begin = now_us() - begin;
	sandbox_close(&sandbox);
	return begin;
}

/* Like build, after the zygote has had time to prepare a spare sandbox (SPARE_AFTER_MS). */
static double build_spare(int i)
{
	clock_pause_ms(150);
	return build(count + i);
}

static double open_stage(int i)
{
	struct sandbox sandbox = SANDBOX_NONE;
	struct stage_window window = STAGE_WINDOW_CLOSED;
	struct fault fault = {0};
	struct sandbox_spec spec = job(i);
	double begin;

	check(sandbox_open(&sandbox, &node, &site, &jail, &spec, &fault), "join", &fault);
	begin = now_us();
	check(stage_window_open(&window, sandbox.stage, &fault), "stage", &fault);
	begin = now_us() - begin;
	check(stage_window_leave(&window, &fault), "leave the stage", &fault);
	close_fd(&window.home);
	sandbox_close(&sandbox);
	return begin;
}

static double close_stage(int i)
{
	struct sandbox sandbox = SANDBOX_NONE;
	struct stage_window window = STAGE_WINDOW_CLOSED;
	struct fault fault = {0};
	struct sandbox_spec spec = job(i);
	double begin;

	check(sandbox_open(&sandbox, &node, &site, &jail, &spec, &fault), "join", &fault);
	check(stage_window_open(&window, sandbox.stage, &fault), "stage", &fault);
	begin = now_us();
	check(stage_window_leave(&window, &fault), "leave the stage", &fault);
	close_fd(&window.home);
	begin = now_us() - begin;
	sandbox_close(&sandbox);
	return begin;
}

/* The end of a job that left nothing in its /tmp. */
static double end_clean(int i)
{
	struct leftover left = {.name = ""};
	char name[32];
	double begin;

	build(i); /* the previous row has ended the job */
	snprintf(name, sizeof(name), "%d", 1000000 + i);
	begin = now_us();
	check(epilog_end_job(&node, name, soon(), &left), "end", NULL);
	return now_us() - begin;
}

static double epilog(int i)
{
	struct fault fault = {0};
	struct launch launch;
	double begin = now_us();

	launch_prepare(&launch, &node, "epilog", soon());
	launch_add_word(&launch, "job=%d", 1000000 + i);
	check(launch_run(&launch, &node, soon(), &fault), "epilog", &fault);
	return now_us() - begin;
}

/* Creates the directories that a job's first step creates in scratch. */
static double make_directories(int i)
{
	char outer[GOJAIL_PATH_MAX + 64], inner[GOJAIL_PATH_MAX + 80];
	double begin;

	snprintf(outer, sizeof(outer), "%s/jobs/%d", site.scratch, 2000000 + i);
	snprintf(inner, sizeof(inner), "%s/tmp", outer);
	begin = now_us();
	check(mkdir(outer, 0700), outer, NULL);
	check(mkdir(inner, 01777), inner, NULL);
	begin = now_us() - begin;
	rmdir(inner);
	rmdir(outer);
	return begin;
}

/* The call that in_fork measures: fork itself, or one that a child makes in the job's namespaces. */
enum kernel_call { FORK, SETNS, UNSHARE, CONFINE };

static double in_fork(enum kernel_call call, int i)
{
	struct sandbox sandbox = SANDBOX_NONE;
	struct fault fault = {0};
	struct sandbox_spec spec = job(i);
	double begin;
	int status;
	pid_t child;

	check(sandbox_open(&sandbox, &node, &site, &jail, &spec, &fault), "join", &fault);
	begin = now_us();
	child = fork();
	if (child == 0) {
		int result;

		*in_child = now_us();
		result = call == FORK ? 0 : enter_sandbox(&sandbox, &fault);
		if (call == UNSHARE && result == 0) {
			*in_child = now_us();
			result = unshare(CLONE_NEWNS);
		}
		if (call == CONFINE && result == 0) {
			*in_child = now_us();
			result = confine_apply(&confine, &fault);
		}
		*in_child = now_us() - *in_child;
		_exit(result < 0);
	}
	check(child, "fork", NULL);
	if (waitpid(child, &status, 0) != child || status != 0)
		check(-1, "a child failed", &fault);
	begin = now_us() - begin;
	sandbox_close(&sandbox);
	return call == FORK ? begin : *in_child;
}

static double only_fork(int i) { return in_fork(FORK, i); }
static double only_setns(int i) { return in_fork(SETNS, i); }
static double only_confine(int i) { return in_fork(CONFINE, i); }
static double only_unshare(int i) { return in_fork(UNSHARE, i); }

int main(int argc, char **argv)
{
	struct fault fault = {0};

	if (argc != 7)
		return 2;
	snprintf(node.libdir, sizeof(node.libdir), "%s", argv[1]);
	snprintf(node.config, sizeof(node.config), "%s", argv[2]);
	snprintf(node.state, sizeof(node.state), "%s", argv[3]);
	snprintf(node.name, sizeof(node.name), "%s", argv[4]);
	wanted = argv[5];
	count = atoi(argv[6]);
	in_child = mmap(NULL, sizeof(*in_child), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	repeat("lookup", lookup, count);
	check(site_open(&site, &node, &fault), "site", &fault);
	repeat("template", make_template, count);
	repeat("build", build, count);
	repeat("spare", build_spare, count);
	repeat("join", build, count); /* the sandbox exists already */
	repeat("stage_open", open_stage, count);
	repeat("stage_close", close_stage, count);
	repeat("setns", only_setns, count);
	check(confine_read(&confine, &node, &jail, &fault), "confine", &fault);
	repeat("confine", only_confine, count);
	repeat("unshare", only_unshare, count);
	repeat("fork", only_fork, count);
	repeat("mkdir", make_directories, count);
	repeat("epilog", epilog, count);
	repeat("end", end_clean, count);
	return 0;
}
