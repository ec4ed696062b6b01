/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks.c: what the plugin does at each of Slurm's calls (slurm/spank.h).
 *
 *   srun, sbatch, salloc     init: options.  init_post_opt: check and pass them on.
 *   slurmd                   init: sweep, in the background.
 *   slurmstepd, root         init
 *                            init_post_opt         find or build the sandbox; enter the stage
 *               (Slurm opens --output, --error, --input and changes directory)
 *               euid user    user_init             show the job's cgroups and PMIx's directory in the jail; leave the stage; forks go to
 *                                                  the job's PID namespace, until the first task_post_fork
 *     task      root         task_init_privileged  a fault ends here; else enter the jail, and give up
 *                                                  capabilities and system calls
 *               user         task_init             no descriptor of the node's; with --jail-root: become root in the
 *                                                  jail; the cookies of --x11
 *               root         task_post_fork, first what is forked from now on is a task epilog: into the jail with it
 *               root         task_post_fork, last  enter the stage, where Slurm up to 23.02 looks for task epilogs
 *               root         task_exit, last       leave it
 *               root         exit                  leave whatever is still open
 *   slurmstepd spank epilog  job_epilog: tear the job's sandboxes down.
 *
 * A fault before task_init_privileged is latched, and the hook returns 0: only
 * there is an error a failure of the job (FAILED, exit code, text in the user's
 * stderr) on every release; earlier it is exit code 0 or a drained node, or from
 * 25.05 on a failure of the job without a word of the reason.
 *
 * Up to 25.05 a required plugin that returns a positive number ends a hook for those
 * after it in plugstack.conf, and the step goes on (spank.c, _do_call_stack): what
 * has not been called before is noticed in the next hook of the task.
 */
#include "common/clock.h"
#include "common/fd.h"
#include "common/job.h"
#include "common/launch.h"
#include "common/path.h"
#include "common/record.h"
#include "common/site.h"
#include "common/syscalls.h"
#include "common/zygote_client.h"
#include "plugin/cgroups.h"
#include "plugin/confine.h"
#include "plugin/enter.h"
#include "plugin/environment.h"
#include "plugin/epilog.h"
#include "plugin/forks.h"
#include "plugin/gpus.h"
#include "plugin/oci.h"
#include "plugin/options.h"
#include "plugin/release.h"
#include "plugin/share.h"
#include "plugin/stage_window.h"
#include "plugin/stdio.h"
#include "plugin/x11.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <slurm/slurm.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* All that the library exports: these names and the hooks. */
#define HOOK __attribute__((visibility("default")))
#pragma GCC visibility push(default)
SPANK_PLUGIN(gojail, 1)
#pragma GCC visibility pop

static struct node node;
static struct fault fault; /* the latch: the first fault of this step */
static struct sandbox sandbox = SANDBOX_NONE;
static struct visit window = VISIT_NONE;
static struct confine confine;
static uint32_t forked, ended;
static bool external; /* a step without tasks, which no jail is for */
static bool judged;   /* init_post_opt was called */
static bool entered;  /* task_init_privileged was, in this task */
/* What the jail is to show of the step: the directory of its PMIx server first, if it has one; and the job's cgroups. */
static struct shown shown[1 + CGROUPS_MAX];
static bool own_cgroups;
static char script[GOJAIL_PATH_MAX]; /* directory of the batch script, or "" */
static struct x11 x11;
static pid_t stepd; /* the process that is in the stage */
static int stage = -1; /* mountinfo of the stage: read where a task has a file of its as stdin, stdout or stderr */

/*
 * With SlurmdParameters=contain_spank (24.05) some hooks run in a child that shares
 * our memory but neither descriptors nor namespaces: what it enters or leaves is
 * lost with it. slurmstepd then stays in the stage, and leaves it in exit.
 */
static bool contained(void)
{
	return stepd && getpid() != stepd;
}

/* The batch script's directory is shown in the jail, where Slurm executes it. */
static int find_script(spank_t sp, struct wish *wish)
{
	char **argv = NULL, *slash;
	int argc = 0;

	if (spank_get_item(sp, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS || argc < 1 ||
	    snprintf(wish->script, sizeof(wish->script), "%s", argv[0]) >= (int)sizeof(wish->script) ||
	    wish->script[0] != '/')
		return fault_set(&fault, "Slurm did not say where the batch script is");
	slash = strrchr(wish->script, '/');
	*slash = '\0';
	return 0;
}

static int find_wish(spank_t sp, uint32_t step, struct wish *wish)
{
	gid_t *groups = NULL;
	uint32_t job;

	if (spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_UID, &wish->user.uid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_GID, &wish->user.gid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &groups, &wish->user.ngroups) != ESPANK_SUCCESS)
		return fault_set(&fault, "Slurm did not say whose step this is");
	wish->user.groups = groups;
	snprintf(wish->job, sizeof(wish->job), "%u", job);
	return step == SLURM_BATCH_SCRIPT ? find_script(sp, wish) : 0;
}

/* Reads a list of the step's environment; "" where Slurm sets none. One that cannot be read whole is never read in part. */
static int read_list(spank_t sp, const char *name, char *list, size_t size)
{
	spank_err_t got = spank_getenv(sp, name, list, (int)size);

	if (got == ESPANK_ENV_NOEXIST)
		list[0] = '\0';
	if (got == ESPANK_SUCCESS || got == ESPANK_ENV_NOEXIST)
		return 0;
	return fault_set(&fault, "cannot read %s of the step: %s; ask your administrator", name,
			 got == ESPANK_NOSPACE ? "it is too long" : "Slurm refuses it");
}

/*
 * What Slurm gave the job of GPUs and NICs. Its plugins set or remove the one
 * variable in every step; the other is the user's (gres_common.c). Whether
 * there are such plugins at all, Go knows.
 */
static int find_gres(spank_t sp, uint32_t step, char *gpus, char *nics, size_t size)
{
	bool whole = step == SLURM_BATCH_SCRIPT || step == SLURM_INTERACTIVE_STEP;

	return read_list(sp, whole ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS", gpus, size) < 0 ||
		       read_list(sp, whole ? "SLURM_JOB_NICS" : "SLURM_STEP_NICS", nics, size) < 0 ? -1 : 0;
}

/* NAME=VALUE lines that netsetup wrote for the tasks. */
static void set_net_env(spank_t sp, const char *job)
{
	char path[GOJAIL_PATH_MAX + 64], *line = NULL, *value;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/jobs/%s/.net.env", node.state, job);
	file = fopen(path, "re");
	if (!file) {
		fault_set(&fault, "cannot read %s: %s", path, strerror(errno));
		return;
	}
	while (getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		value = strchr(line, '=');
		if (!value)
			continue;
		*value++ = '\0';
		if (spank_setenv(sp, line, value, 1) != ESPANK_SUCCESS)
			fault_set(&fault, "Slurm does not let %s be set in the tasks' environment", line);
	}
	free(line);
	fclose(file);
}

/* The stage alone, so that the reason of a fault reaches the user's own file. */
static void enter_stage_for_fault(const struct jail *jail)
{
	struct fault ignored = {0};
	struct record zygote;

	if (window.away)
		return; /* it is there */
	if (sandbox.stage < 0 && zygote_find(&node, jail->name, &zygote) == 0) {
		scoped_fd process = record_pidfd(&zygote);
		sandbox.stage = record_take(&zygote, process, GOJAIL_STAGE_FD);
	}
	if (sandbox.stage >= 0)
		stage_window_open(&window, sandbox.stage, &ignored);
}

/* What the user asked for, or the site's default: 0, -1 with a fault. Jail "none" wants nothing else. */
static int choose(spank_t sp, const struct site *site, struct choice *choice)
{
	if (options_choice(sp, choice) < 0)
		return fault_set(&fault, "the value of a --jail option is too long");
	if (!choice->jail[0])
		snprintf(choice->jail, sizeof(choice->jail), "%s", site->default_jail);
	else if (strcmp(choice->jail, "none") == 0 && !site->none_allowed)
		return fault_set(&fault, "--jail=none is not allowed at this site; leave the option out, or name a jail");
	if (strcmp(choice->jail, "none"))
		return 0;
	if (choice->mounts[0])
		return fault_set(&fault, "--jail-mount needs a jail; give --jail=NAME too");
	if (choice->net[0] && strcmp(choice->net, "none"))
		return fault_set(&fault, "--jail-net needs a jail; give --jail=NAME too");
	if (choice->root[0] && strcmp(choice->root, "none"))
		return fault_set(&fault, "--jail-root needs a jail; give --jail=NAME too");
	return 0;
}

/* The sandbox, and all that is the step's own in it. */
static int open_sandbox(spank_t sp, uint32_t step, const struct site *site, const struct jail *jail, const struct wish *wish)
{
	if (step <= SLURM_MAX_NORMAL_STEP_ID)
		snprintf(shown[0].path, sizeof(shown[0].path), "%s/pmix.%s.%u", jail->spool, wish->job, (unsigned)step);
	own_cgroups = jail->namespaces & GOJAIL_REQUEST_CGROUP;
	if (oci_is_step(jail->spool, wish->job, step))
		return fault_set(&fault, "--container and --jail do not go together: the bundle of the container is the node's; "
				 "give --jail=none with --container");
	if (confine_open(&confine, &node, jail, &fault) < 0 || sandbox_open(&sandbox, &node, site, jail, wish, &fault) < 0)
		return -1;
	if (forks_prepare(&sandbox, jail->scope, &fault) < 0)
		return -1;
	if (gpus_show(jail, wish->gpus, sandbox.mnt, sandbox.root, &fault) < 0)
		return -1;
	env_jail(sp, jail, &fault);
	if (wish->net)
		set_net_env(sp, wish->job);
	if (fault.text[0] || stage_window_open(&window, sandbox.stage, &fault) < 0)
		return -1;
	stage = k_open_own("mountinfo");
	return stage < 0 ? fault_set(&fault, "cannot read the stage's mounts: %s", strerror(errno)) : 0;
}

#define GRES_MAX 4096 /* bytes of the list of a step's GPUs, or NICs */

/* Configuration, wish, sandbox, stage: the way of a step into its jail. */
static int prepare(spank_t sp, uint32_t step)
{
	static struct choice choice;
	static char gpus[GRES_MAX], nics[GRES_MAX];
	struct wish wish = {0};
	struct site site = {0};
	struct jail jail;
	int result = -1;

	if (fault.text[0] || node_open_state(&node, &fault) < 0)
		return -1;
	if (site_open(&site, &node, &fault) < 0 || choose(sp, &site, &choice) < 0)
		goto out;
	if (strcmp(choice.jail, "none") == 0) {
		result = 0;
		goto out;
	}
	if (find_wish(sp, step, &wish) < 0 || site_jail(&site, choice.jail, &wish.user, &jail, &fault) < 0 ||
	    site_root(&jail, choice.root, sizeof(choice.root), &fault) < 0)
		goto out;
	wish.mounts = choice.mounts[0] ? choice.mounts : NULL;
	wish.net = choice.net[0] ? choice.net : jail.net;
	if (strcmp(wish.net, "none") == 0)
		wish.net = NULL;
	wish.root = choice.root[0] ? choice.root : NULL;
	if (find_gres(sp, step, gpus, nics, sizeof(gpus)) < 0)
		goto out;
	wish.gpus = gpus;
	wish.nics = nics;
	memcpy(script, wish.script, sizeof(script));
	result = open_sandbox(sp, step, &site, &jail, &wish);
	if (result < 0)
		enter_stage_for_fault(&jail);
out:
	site_close(&site);
	return result;
}

/* For what the jobs before left: big directories, VFs, a fabric manager that is slow. Nobody waits. */
#define BOOT_MS (30 * 60 * 1000)

HOOK int slurm_spank_init(spank_t sp, int argc, char **argv)
{
	struct launch launch;
	int64_t until = clock_ms() + BOOT_MS;

	switch (spank_context()) {
	case S_CTX_LOCAL:
	case S_CTX_ALLOCATOR:
		return options_register(sp);
	case S_CTX_REMOTE:
		if (options_register(sp) < 0)
			fault_set(&fault, "Slurm did not take the plugin's options");
		node_find(&node, argc, argv, &fault);
		return 0;
	case S_CTX_SLURMD:
		if (node_find(&node, argc, argv, &fault) == 0 && node_open_state(&node, &fault) == 0) {
			launch_begin(&launch, &node, "boot", until);
			if (launch.untrusted)
				slurm_error("gojail: %s/%s is not root's alone: nothing of earlier jobs is removed", node.libdir, launch.untrusted);
			launch_detached(&launch);
		} else {
			slurm_error("gojail: %s", fault.text);
		}
		return 0;
	default:
		return 0;
	}
}

HOOK int slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
	uint32_t step = 0;

	(void)argc;
	(void)argv;
	if (spank_context() != S_CTX_REMOTE)
		return options_submit();
	if (spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS)
		fault_set(&fault, "Slurm did not say which step this is");
	else if (!(external = step == SLURM_EXTERN_CONT) && prepare(sp, step) < 0 && !fault.text[0])
		fault_set(&fault, "the jail could not be prepared");
	stepd = getpid();
	if (fault.text[0])
		slurm_error("gojail: %s", fault.text); /* slurmd's log; the user's copy comes later */
	judged = true;
	return 0;
}

/*
 * What is forked from now on is to be in the job's PID namespace. After the tasks come task epilogs, for which Slurm
 * calls no hook: in the node's namespaces, and with all of root's rights. That of a step with a fault, whose tasks
 * do not run, would be a program of the user's on the node. Root's tasks look like epilogs.
 */
static int see_to_forks(bool tasks_of_root)
{
	if (external)
		return 0;
	if (!judged)
		fault_set(&fault, NODE_UNASKED);
	if (sandbox.mnt < 0 && !fault.text[0])
		return 0; /* no jail */
	return forks_begin(stepd, !tasks_of_root, &sandbox, &confine, &fault);
}

/* Slurm's mpi/pmix has made its directory by now (lib_tmpdir in its pmixp_info.c), and its clients look for it at that path. */
static void show_own(void)
{
	struct shown *list = shown[0].path[0] ? shown : shown + 1;
	int count = shown + 1 - list;

	shown[0].attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	if (own_cgroups)
		count += cgroups_find(shown + 1, CGROUPS_MAX);
	if (count)
		share_show(sandbox.mnt, sandbox.root, list, count, &fault);
}

/* What root does of user_init, which Slurm calls as the user. */
static void leave_stage(void)
{
	uid_t user = geteuid();

	if (k_seteuid(0) < 0)
		fault_set(&fault, "cannot become root again: %s", strerror(errno));
	if (sandbox.mnt >= 0 && !fault.text[0])
		show_own();
	if (!contained())
		visit_leave(&window, &fault);
	if (k_seteuid(user) < 0)
		fault_set(&fault, "cannot become user %u again: %s", (unsigned)user, strerror(errno));
}

HOOK int slurm_spank_user_init(spank_t sp, int argc, char **argv)
{
	uid_t user;

	(void)argc;
	(void)argv;
	if (sandbox.mnt >= 0 || window.away)
		leave_stage();
	if (sandbox.mnt >= 0 && !fault.text[0])
		x11_take(&x11, sp);
	/* The last thing before the tasks are forked. An earlier plugin may see to it that task_post_fork is not called. */
	if (spank_get_item(sp, S_JOB_UID, &user) != ESPANK_SUCCESS)
		fault_set(&fault, "Slurm did not say whose job this is");
	else
		see_to_forks(user == 0);
	return 0;
}

/* One line is enough, from however many tasks. */
static int task_failed(spank_t sp)
{
	int task = 0;

	spank_get_item(sp, S_TASK_ID, &task);
	if (task == 0)
		slurm_error("gojail: %s", fault.text);
	return HOOK_FAILED;
}

/* Slurm forked the task while user_init's doing was in force. */
static bool in_own_pids(void)
{
	struct stat own, wanted;

	return sandbox.pid < 0 || (stat("/proc/self/ns/pid", &own) == 0 && fstat(sandbox.pid, &wanted) == 0 &&
				   own.st_dev == wanted.st_dev && own.st_ino == wanted.st_ino);
}

HOOK int slurm_spank_task_init_privileged(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!judged || (sandbox.mnt >= 0 && (!in_own_pids() || !forks_are_in_domain())))
		fault_set(&fault, NODE_UNASKED);
	if (!fault.text[0] && sandbox.mnt >= 0)
		enter_sandbox(&sandbox, &fault);
	/* Who is to be root there gives up the powers of a root there, too: in task_init. */
	if (!fault.text[0] && sandbox.mnt >= 0 && (sandbox.user < 0 ? confine_apply : confine_begin)(&confine, &fault) < 0)
		return task_failed(sp);
	entered = true;
	return fault.text[0] ? task_failed(sp) : 0;
}

HOOK int slurm_spank_task_init(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!entered)
		fault_set(&fault, NODE_UNASKED);
	if (!fault.text[0] && sandbox.mnt >= 0)
		descriptors_check(stage, &fault);
	if (!fault.text[0] && sandbox.user >= 0 && enter_as_root(&sandbox, &fault) == 0)
		confine_apply(&confine, &fault);
	if (!fault.text[0] && sandbox.mnt >= 0)
		x11_put(&x11);
	return fault.text[0] ? task_failed(sp) : 0;
}

HOOK int slurm_spank_task_post_fork(spank_t sp, int argc, char **argv)
{
	struct fault late = {0};
	uint32_t tasks = 0;

	(void)argc;
	(void)argv;
	if (forked++ == 0) { /* all tasks are forked when the first of them is told of */
		if (see_to_forks(false) < 0) {
			slurm_error("gojail: %s", fault.text);
			return HOOK_FAILED;
		}
	}
	if (sandbox.mnt < 0 || fault.text[0] || contained() ||
	    spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS || forked < tasks)
		return 0;
	/* Not the jail: what Slurm reads of its tasks meanwhile is the node's /proc and /sys, and none that a user has put there. */
	if (EPILOG_IS_LOOKED_FOR && stage_window_open(&window, sandbox.stage, &late) < 0)
		/* A failure here would drain the node. Slurm looks for them on the node then, and they run in the jail or nowhere. */
		slurm_error("gojail: %s", late.text);
	return 0;
}

HOOK int slurm_spank_task_exit(spank_t sp, int argc, char **argv)
{
	struct fault late = {0};

	(void)sp;
	(void)argc;
	(void)argv;
	if (++ended != forked)
		return 0;
	forks_end();
	if (!contained() && visit_leave(&window, &late) < 0)
		slurm_error("gojail: %s", late.text);
	return 0;
}

HOOK int slurm_spank_exit(spank_t sp, int argc, char **argv)
{
	struct fault late = {0};

	(void)sp;
	(void)argc;
	(void)argv;
	forks_end(); /* the plugin stays loaded */
	/* Where opening --output failed, user_init was never called. */
	if (visit_end(&window, &late) < 0)
		slurm_error("gojail: %s", late.text);
	if (shown[0].done && share_hide(sandbox.mnt, shown[0].path, &late) < 0)
		slurm_error("gojail: %s", late.text);
	if (script[0] && sandbox.root >= 0)
		share_remove_script(sandbox.root, script);
	sandbox_close(&sandbox);
	return 0;
}

/* Its VFs are to be given back: that is Go's. */
static bool has_net(const char *job)
{
	char path[GOJAIL_PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/net/jobs/%s.json", node.state, job);
	return access(path, F_OK) == 0;
}

/*
 * How long Slurm waits for the end of a job at most, and how much of that for the files that the job left. What takes
 * longer goes on in a process of its own. With a network the whole GOJAIL_DEFAULT_DEADLINE_MS: a VF is the next
 * job's as soon as this returns. `gojail check` compares with slurm.conf (gojail/check/epilog.go).
 */
#define LEFTOVER_MS 1000

static void clean(const char *job, const struct leftover *left)
{
	struct launch launch;

	launch_begin(&launch, &node, "clean", clock_ms() + BOOT_MS);
	launch_word(&launch, "job=%s", job);
	if (left->name[0])
		launch_word(&launch, "scratch=%s", left->scratch);
	launch_detached(&launch);
}

HOOK int slurm_spank_job_epilog(spank_t sp, int argc, char **argv)
{
	struct leftover left = {.name = ""};
	char path[GOJAIL_PATH_MAX + 32], name[32];
	int64_t begin = clock_ms(), until;
	struct launch launch;
	bool gone, net;
	uint32_t job;

	/* Whatever happens: an error here drains the node. The sweep comes again. */
	if (spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS || node_find(&node, argc, argv, &fault) < 0)
		goto out;
	snprintf(path, sizeof(path), "%s/jobs/%u", node.state, job);
	snprintf(name, sizeof(name), "%u", job);
	net = has_net(name);
	until = begin + (net ? GOJAIL_DEFAULT_DEADLINE_MS : GOJAIL_END_MS);
	/* Nothing there: it had no jail here. */
	gone = !net && (access(path, F_OK) < 0 || end_job(&node, name, begin + GOJAIL_END_MS / 2, &left) == 0);
	if (!gone) {
		launch_begin(&launch, &node, "epilog", until);
		launch_word(&launch, "job=%u", job);
		if (launch_run(&launch, &node, until, &fault) < 0)
			end_failed(&node, name);
	}
	if (!gone || left.name[0] || end_is_due(&node)) {
		clean(name, &left);
		scratch_wait(&left, begin + LEFTOVER_MS);
	}
out:
	if (fault.text[0])
		slurm_error("gojail: %s", fault.text);
	return 0;
}
