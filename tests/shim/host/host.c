/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c: a stand-in for Slurm's side of the SPANK interface, so that the shim
 * can run under sanitizers. It loads the plugin named by argv[1] and plays the
 * calls of argv[2]; the facts of the step come from variables:
 *
 *   HOST_CONTEXT   local, allocator, remote, slurmd, script
 *   HOST_JOB       job id
 *   HOST_STEP      step id (batch: 4294967291, extern: 4294967292)
 *   HOST_API       API_CURRENT of Slurm's META, which names its release: 38 is that of 22.05
 *   HOST_JAIL, HOST_MOUNT, HOST_ROOT   option values, the second separated by ';'; HOST_ROOT=- is the option without
 * one HOST_SCRIPT    path of the batch script HOST_ARG1, HOST_ARG2   plugstack.conf arguments
 *
 * The call "place" prints where the process is: "at home", or what differs from the start: the namespace, which is the
 * jail's or the stage's, the root, the effective user, the mask. "as_user" is user_init as Slurm calls it. "make"
 * creates the directories of HOST_MAKE, separated by ';', as Slurm does between two hooks. "counted" prints how many
 * calls can fail (faults.c). "open" opens HOST_OPEN for writing, as a file that Slurm writes for tasks. The call
 * "judge" reads values of --jail-mount, a line each, and prints a result for each. "version" prints plugin_version. It
 * prints "CALL rc" for each call and, in task, the jail's /marker.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm_errno.h>
#include <slurm/spank.h>

#define EXPORT __attribute__((visibility("default")))

extern int faults_counted;

static struct place {
	struct stat namespace, root;
	uid_t user;
	mode_t mask;
} home;

static struct place find_place(void)
{
	struct place place = {.user = geteuid(), .mask = umask(0)};

	umask(place.mask);
	stat("/proc/thread-self/ns/mnt", &place.namespace);
	stat("/", &place.root);
	return place;
}

static void print_place(void)
{
	struct place now = find_place();

	printf("at");
	if (access("/marker", F_OK) == 0)
		printf(" JAIL");
	else if (now.namespace.st_ino != home.namespace.st_ino)
		printf(" stage");
	else if (now.root.st_ino != home.root.st_ino || now.root.st_dev != home.root.st_dev)
		printf(" CHROOT");
	else
		printf(" home");
	if (now.user != home.user)
		printf(" as user %u", now.user);
	if (now.mask != home.mask)
		printf(" with mask %o", now.mask);
	printf("\n");
}

static struct spank_option *options[8];
static int noptions, quiet;

static const char *fact(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value ? value : otherwise;
}

EXPORT spank_context_t spank_context(void)
{
	const char *context = fact("HOST_CONTEXT", "remote");

	return strcmp(context, "local") == 0     ? S_CTX_LOCAL :
	       strcmp(context, "allocator") == 0 ? S_CTX_ALLOCATOR :
	       strcmp(context, "slurmd") == 0    ? S_CTX_SLURMD :
	       strcmp(context, "script") == 0    ? S_CTX_JOB_SCRIPT :
						   S_CTX_REMOTE;
}

EXPORT spank_err_t spank_option_register(spank_t sp, struct spank_option *option)
{
	(void)sp;
	options[noptions++] = option;
	return (spank_err_t)0;
}

/* What Slurm would tell the Prolog of the job. */
EXPORT spank_err_t spank_job_control_setenv(spank_t sp, const char *name, const char *value, int overwrite)
{
	(void)sp;
	(void)overwrite;
	printf("prolog %s: %s\n", name, value);
	return ESPANK_SUCCESS;
}

EXPORT spank_err_t spank_job_control_unsetenv(spank_t sp, const char *name)
{
	(void)sp;
	printf("prolog without %s\n", name);
	return ESPANK_SUCCESS;
}

EXPORT spank_err_t spank_getenv(spank_t sp, const char *variable, char *value, int size)
{
	const char *set = getenv(variable);

	(void)sp;
	if (!set)
		return (spank_err_t)ESPANK_ENV_NOEXIST;
	if ((int)strlen(set) >= size)
		return (spank_err_t)ESPANK_NOSPACE;
	strcpy(value, set);
	return (spank_err_t)0;
}

EXPORT spank_err_t spank_setenv(spank_t sp, const char *variable, const char *value, int overwrite)
{
	(void)sp;
	return setenv(variable, value, overwrite) ? (spank_err_t)ESPANK_NOSPACE : (spank_err_t)0;
}

EXPORT spank_err_t spank_get_item(spank_t sp, spank_item_t item, ...)
{
	static gid_t groups[] = {5001, 5002};
	static char *argv[2];
	va_list args;
	int rc = 0;

	(void)sp;
	va_start(args, item);
	switch (item) {
	case S_JOB_UID:
	case S_JOB_GID:
		*va_arg(args, uid_t *) = 5001;
		break;
	case S_JOB_ID:
		*va_arg(args, uint32_t *) = (uint32_t)strtoul(fact("HOST_JOB", "7"), NULL, 10);
		break;
	case S_JOB_STEPID:
		*va_arg(args, uint32_t *) = (uint32_t)strtoul(fact("HOST_STEP", "0"), NULL, 10);
		break;
	case S_JOB_LOCAL_TASK_COUNT:
		*va_arg(args, uint32_t *) = 1;
		break;
	case S_TASK_ID:
		*va_arg(args, int *) = 0;
		break;
	case S_JOB_SUPPLEMENTARY_GIDS:
		*va_arg(args, gid_t **) = groups;
		*va_arg(args, int *) = 2;
		break;
	case S_JOB_ARGV:
		argv[0] = (char *)(uintptr_t)fact("HOST_SCRIPT", "/bin/true");
		*va_arg(args, int *) = 1;
		*va_arg(args, char ***) = argv;
		break;
	default:
		rc = ESPANK_BAD_ARG;
	}
	va_end(args);
	return (spank_err_t)rc;
}

/* From 23.02 on slurmstepd ends if it sends a message in user_init: it holds a lock (auth_setuid_lock in auth.c). */
static int locked;

static void send_message(void)
{
	if (!locked)
		return;
	printf("fatal: a message is sent in user_init\n");
	exit(4);
}

EXPORT int slurm_notify_job(unsigned job, char *message)
{
	send_message();
	printf("to job %u: %s\n", job, message);
	return 0;
}

EXPORT int slurm_load_job(void **found, unsigned job, unsigned short flags)
{
	(void)found;
	(void)flags;
	send_message();
	printf("load job %u\n", job);
	return -1;
}

/* Clears as many bytes as the structure of this Slurm has, as Slurm does first. */
EXPORT void slurm_init_job_desc_msg(void *job) { memset(job, 0, strtoul(fact("HOST_JOB_SIZE", "880"), NULL, 10)); }

EXPORT long slurm_api_version(void) { return strtol(fact("HOST_API", "38"), NULL, 10) << 16; }

EXPORT void slurm_error(const char *format, ...)
{
	va_list args;

	if (quiet)
		return;
	va_start(args, format);
	printf("error: ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

static int hook(void *plugin, const char *name)
{
	char *argv[] = {(char *)(uintptr_t)fact("HOST_ARG1", "state=/nonexistent"),
			(char *)(uintptr_t)fact("HOST_ARG2", "config=/nonexistent")};
	char symbol[64];
	spank_f *call;
	int rc;

	snprintf(symbol, sizeof(symbol), "slurm_spank_%s", name);
	*(void **)&call = dlsym(plugin, symbol);
	if (!call) {
		printf("%s missing\n", name);
		exit(3);
	}
	locked = strcmp(name, "user_init") == 0;
	rc = call(NULL, 2, argv);
	locked = 0;
	printf("%s %d\n", name, rc);
	fflush(stdout);
	return rc;
}

static void give_options(void)
{
	int remote = spank_context() == S_CTX_REMOTE;
	const char *root = getenv("HOST_ROOT");
	char *mounts = strdup(fact("HOST_MOUNT", "")), *rest = mounts, *one;

	if (getenv("HOST_JAIL"))
		printf("jail %d\n", options[0]->cb(options[0]->val, getenv("HOST_JAIL"), remote));
	while ((one = strsep(&rest, ";")) && *one)
		printf("jail-mount %d\n", options[1]->cb(options[1]->val, one, remote));
	free(mounts);
	if (root)
		printf("jail-root %d\n", options[3]->cb(options[3]->val, strcmp(root, "-") ? root : NULL, remote));
}

/* One value of --jail-mount a line on standard input; one result a line. */
static void judge(void *plugin)
{
	static char line[1 << 17];
	spank_f *init;

	*(void **)&init = dlsym(plugin, "slurm_spank_init");
	quiet = 1;
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		noptions = 0;
		if (init(NULL, 0, NULL) < 0)
			exit(3);
		printf("%d\n", options[1]->cb(options[1]->val, line, 0));
	}
}

/* The task: a fork as the user that has become root again. */
static void task(void *plugin)
{
	char line[128] = "";
	pid_t child = seteuid(5001) < 0 ? -1 : fork();

	if (seteuid(0) < 0)
		_exit(1);
	if (child == 0) {
		FILE *marker;

		if (hook(plugin, "task_init_privileged") < 0)
			_exit(1);
		marker = fopen("/marker", "r");
		if (marker && fgets(line, sizeof(line), marker))
			printf("marker %s", line);
		else
			printf("task OUTSIDE\n");
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void make_directories(void)
{
	char *paths = strdup(fact("HOST_MAKE", "")), *rest = paths, *one;

	while ((one = strsep(&rest, ";")) && *one)
		mkdir(one, 0755);
	free(paths);
}

/* Calls user_init as Slurm does, as the user. */
static void user_init(void *plugin)
{
	if (seteuid(5001) < 0)
		exit(3);
	hook(plugin, "user_init");
	print_place();
	if (seteuid(0) < 0)
		exit(3);
}

int main(int argc, char **argv)
{
	void *plugin = argc == 3 ? dlopen(argv[1], RTLD_LAZY) : NULL;
	char *rest = argc == 3 ? argv[2] : NULL, *name;

	if (!plugin) {
		fprintf(stderr, "usage: host PLUGIN CALL,CALL...: %s\n", argc == 3 ? dlerror() : "");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	home = find_place();
	while ((name = strsep(&rest, ","))) {
		if (strcmp(name, "options") == 0)
			give_options();
		else if (strcmp(name, "judge") == 0)
			judge(plugin);
		else if (strcmp(name, "task") == 0)
			task(plugin);
		else if (strcmp(name, "make") == 0)
			make_directories();
		else if (strcmp(name, "as_user") == 0)
			user_init(plugin);
		else if (strcmp(name, "open") == 0)
			open(fact("HOST_OPEN", ""), O_WRONLY);
		else if (strcmp(name, "place") == 0)
			print_place();
		else if (strcmp(name, "version") == 0)
			printf("version %06x\n", *(unsigned *)dlsym(plugin, "plugin_version"));
		else if (strcmp(name, "counted") == 0)
			printf("counted %d\n", faults_counted);
		else if (strcmp(name, "environment") == 0)
			printf("SLURM_JAIL=%s SLURM_JAIL_MOUNT=%s\nSLURM_JAIL_ROOT=%s\n", fact("SLURM_JAIL", ""),
			       fact("SLURM_JAIL_MOUNT", ""), fact("SLURM_JAIL_ROOT", ""));
		else
			hook(plugin, name);
	}
	return 0;
}
