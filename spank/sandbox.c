/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox.h"

#include "clock.h"
#include "kernel.h"
#include "launch.h"
#include "lock.h"
#include "record.h"
#include "scratch.h"
#include "template.h"
#include "window.h"
#include "zygote.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void sandbox_close(struct sandbox *sandbox)
{
	close_fd(&sandbox->mnt);
	close_fd(&sandbox->stage);
	while (sandbox->nmounts > 0)
		free(sandbox->mounts[--sandbox->nmounts]);
}

/* The jail's name, and a hash of the mounts where there are some (FNV-1a). */
static void sandbox_name(char *name, const struct jail *jail, const struct wish *wish)
{
	uint64_t hash = 14695981039346656037ull;

	snprintf(name, SANDBOX_NAME_MAX + 1, "%s", jail->name);
	if (!wish->mounts)
		return;
	for (const char *c = wish->mounts; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
	snprintf(name, SANDBOX_NAME_MAX + 1, "%s+%016" PRIx64, jail->name, hash);
}

/* Destinations of SRC:DST[:ro],... for the stage; Go has judged the list itself. */
static void note_mounts(struct sandbox *sandbox, const char *list)
{
	while (list && *list && sandbox->nmounts < GOJAIL_TREES_MAX) {
		size_t length = strcspn(list, ","), source = strcspn(list, ":");

		if (source < length) {
			size_t destination = strcspn(list + source + 1, ":,");

			sandbox->mounts[sandbox->nmounts++] = strndup(list + source + 1, destination);
		}
		list += length + (list[length] == ',');
	}
}

static int open_namespace(const struct record *holder)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)holder->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && process_start(holder->pid) != holder->start)
		close_fd(&fd);
	return fd;
}

/* A sandbox that is there: its holder's namespace and the stage of any zygote. */
static int find(struct sandbox *sandbox, const struct node *node, const struct jail *jail,
		const struct wish *wish, int64_t until, struct fault *fault)
{
	char name[SANDBOX_NAME_MAX + 1], path[GOJAIL_PATH_MAX + 256];
	struct record holder, zygote;

	sandbox_name(name, jail, wish);
	snprintf(path, sizeof(path), "%s/jobs/%s/%s", node->state, wish->job, name);
	if (record_find(AT_FDCWD, path, &holder) < 0)
		return -1;
	if (template_find(node, jail->name, &zygote) < 0 &&
	    template_get(node, jail, until, &zygote, fault) < 0)
		return -1;
	sandbox->mnt = open_namespace(&holder);
	sandbox->stage = template_stage(&zygote);
	if (sandbox->mnt >= 0 && sandbox->stage >= 0)
		return 0;
	close_fd(&sandbox->mnt);
	close_fd(&sandbox->stage);
	return -1;
}

/* Opens STATE/jobs/JOB, made if absent. */
static int open_job(const struct node *node, const struct wish *wish, struct fault *fault)
{
	char path[GOJAIL_PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), "%s/jobs", node->state);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/jobs/%s", node->state, wish->job);
	mkdir(path, 0700);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		fault_set(fault, "cannot open %s: %s; is the state directory full or read-only?",
			  path, strerror(errno));
	return fd;
}

/* The job's directory, locked; the end of a job removes both, so look again. */
static int lock_job(const struct node *node, const struct wish *wish, int64_t until, int *job,
		    struct fault *fault)
{
	struct stat st;

	for (;;) {
		*job = open_job(node, wish, fault);
		if (*job < 0)
			return -1;
		int lock = lock_until(*job, "lock", until, "the job's sandbox", fault);
		if (lock < 0 || (fstat(lock, &st) == 0 && st.st_nlink > 0))
			return lock;
		close(lock);
		close_fd(job);
	}
}

static int add_tree(struct gojail_tree *trees, uint32_t *count, int fd, const char *destination,
		    uint32_t flags)
{
	struct gojail_tree *tree = &trees[*count];

	if (fd < 0 || *count >= GOJAIL_TREES_MAX)
		return -1;
	*tree = (struct gojail_tree){.fd = fd, .flags = flags};
	snprintf(tree->destination, sizeof(tree->destination), "%s", destination);
	*count += 1;
	return 0;
}

/* The batch script's directory, read-only, at the path that Slurm executes. */
static int script_tree(const struct jail *jail, const struct wish *wish, struct fault *fault)
{
	const char *slash = strrchr(wish->script, '/');
	int tree;

	if (!slash || strncmp(wish->script, jail->spool, (size_t)(slash - wish->script)) ||
	    jail->spool[slash - wish->script])
		return fault_set(fault, "the batch script is in %s, but gojail.toml has slurm.spool = \"%s\"; "
					"ask your administrator to make it SlurmdSpoolDir", wish->script, jail->spool);
	tree = k_open_tree(AT_FDCWD, wish->script, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (tree >= 0 &&
	    k_mount_setattr(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) == 0)
		return tree;
	fault_set(fault, "cannot bring the batch script in %s into the jail: %s", wish->script, strerror(errno));
	close_fd(&tree);
	return -1;
}

/*
 * munge's socket as it is now: munged makes a new one whenever it starts. Without
 * one munged is down at the moment, which is no reason to fail a step that may
 * never need it: the jail then has the template's empty file in its place.
 */
static int munge_tree(const struct jail *jail)
{
	struct stat st;
	/* The directory is munge's own user's, who must not choose another file by a symlink. */
	int tree = k_open_tree(AT_FDCWD, jail->munge, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);

	if (tree >= 0 && (fstat(tree, &st) < 0 || !S_ISSOCK(st.st_mode) ||
			  k_mount_setattr(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
							MOUNT_ATTR_NOEXEC) < 0))
		close_fd(&tree);
	return tree;
}

/* Another sandbox of the same job: /dev/shm, and a /tmp in memory, are one per job. */
static int find_sibling(int job, struct record *sibling)
{
	int copy = openat(job, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = -1;
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);

	if (!dir) {
		close_fd(&copy);
		return -1;
	}
	for (struct dirent *entry; found < 0 && (entry = readdir(dir));)
		if (entry->d_name[0] != '.' && record_find(job, entry->d_name, sibling) == 0)
			found = 0;
	closedir(dir);
	return found;
}

/* Collects what the holder is to attach. */
static int collect(const struct site *site, const struct jail *jail, const struct wish *wish, int job,
		   struct gojail_request *request, struct gojail_tree *trees, struct fault *fault)
{
	struct record sibling;
	scoped_fd mnt = find_sibling(job, &sibling) == 0 ? open_namespace(&sibling) : -1;

	if (mnt < 0)
		request->flags |= GOJAIL_REQUEST_SHM | (jail->tmpfs ? GOJAIL_REQUEST_TMPFS : 0);
	else if (add_tree(trees, &request->ntrees, window_clone(mnt, "/dev/shm", fault), "/dev/shm", 0) < 0 ||
		 (jail->tmpfs &&
		  add_tree(trees, &request->ntrees, window_clone(mnt, "/tmp", fault), "/tmp", 0) < 0))
		return fault_set(fault, "cannot share the job's /dev/shm and /tmp with its other sandbox: %s",
				 strerror(errno));
	if (!jail->tmpfs &&
	    add_tree(trees, &request->ntrees, scratch_tree(site->scratch, wish->job, job, fault), "/tmp", 0) < 0)
		return -1;
	if (wish->script[0] &&
	    add_tree(trees, &request->ntrees, script_tree(jail, wish, fault), wish->script,
		     GOJAIL_TREE_ALONE) < 0)
		return -1;
	if (jail->munge[0])
		add_tree(trees, &request->ntrees, munge_tree(jail), jail->munge, 0);
	return 0;
}

/* What `gojail spec --job` prints: the template's spec, and the user's mounts. */
static void keep_spec(const struct node *node, const struct jail *jail, const struct wish *wish, int job,
		      const char *name)
{
	char from[GOJAIL_PATH_MAX + 128], to[SANDBOX_NAME_MAX + 16];

	snprintf(from, sizeof(from), "%s/jails/%s/config.json", node->state, jail->name);
	snprintf(to, sizeof(to), "%s.json", name);
	unlinkat(job, to, 0);
	if (linkat(AT_FDCWD, from, job, to, 0) < 0 || !wish->mounts)
		return; /* for people only: no step fails for it */
	snprintf(to, sizeof(to), "%s.mounts", name);
	scoped_fd fd = openat(job, to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && write(fd, wish->mounts, strlen(wish->mounts)) < 0)
		unlinkat(job, to, 0);
}

/* A zygote may be replaced (gojail reload, a new configuration) as it is asked. */
static int reach_zygote(const struct node *node, const struct jail *jail, int64_t until, struct fault *fault)
{
	struct record zygote;

	for (int attempt = 0; attempt < 5; attempt++) {
		if (template_get(node, jail, until, &zygote, fault) < 0)
			return -1;
		int talk = zygote_connect(node, jail->name, until, fault);
		if (talk != ZYGOTE_GONE)
			return talk;
		clock_pause_ms(1);
	}
	return fault_set(fault, "the zygote of jail \"%s\" ends whenever it is asked; ask your administrator",
			 jail->name);
}

/* From the request to the record: what is left half-way, the holder ends by itself. */
static int build(struct sandbox *sandbox, const struct node *node, const struct site *site,
		 const struct jail *jail, const struct wish *wish, int job, sandbox_trees user_trees,
		 int64_t until, struct gojail_request *request, struct gojail_tree *trees, struct fault *fault)
{
	char name[SANDBOX_NAME_MAX + 1];
	struct record holder = {0};
	int asked = ZYGOTE_GONE;
	scoped_fd talk = -1;

	for (int attempt = 0; attempt < 3 && asked == ZYGOTE_GONE; attempt++) {
		close_fd(&talk);
		talk = reach_zygote(node, jail, until, fault);
		/* While the zygote forks, what the holder is to attach is collected. */
		if (talk < 0 || (attempt == 0 && (collect(site, jail, wish, job, request, trees, fault) < 0 ||
						  (user_trees && user_trees(wish, trees, &request->ntrees, fault) < 0))))
			return -1;
		asked = zygote_ask(talk, jail->name, request, trees, until, &holder, sandbox, fault);
	}
	if (asked < 0)
		return fault_set(fault, "the zygote of jail \"%s\" ends whenever it is asked; ask your administrator",
				 jail->name);
	sandbox_name(name, jail, wish);
	memcpy(holder.key, jail->key, sizeof(holder.key));
	if (record_write(job, name, &holder, fault) < 0)
		return -1;
	keep_spec(node, jail, wish, job, name);
	return zygote_keep(talk, fault);
}

int sandbox_build(struct sandbox *sandbox, const struct node *node, const struct site *site,
		  const struct jail *jail, const struct wish *wish, sandbox_trees user_trees,
		  int64_t until, struct fault *fault)
{
	struct gojail_tree trees[GOJAIL_TREES_MAX];
	struct gojail_request request = {
		.version = GOJAIL_VERSION, .tmp_bytes = jail->tmp_bytes, .shm_bytes = jail->shm_bytes};
	struct fault ignored = {0};
	scoped_fd job = -1;
	scoped_fd lock = lock_job(node, wish, until, &job, fault);
	int result;

	if (lock < 0)
		return -1;
	if (find(sandbox, node, jail, wish, until, &ignored) == 0)
		return 0;
	result = build(sandbox, node, site, jail, wish, job, user_trees, until, &request, trees, fault);
	for (uint32_t i = 0; i < request.ntrees; i++)
		close_fd(&trees[i].fd);
	if (result < 0) {
		close_fd(&sandbox->mnt);
		close_fd(&sandbox->stage);
	}
	return result;
}

int sandbox_open(struct sandbox *sandbox, const struct node *node, const struct site *site,
		 const struct jail *jail, const struct wish *wish, struct fault *fault)
{
	int64_t until = clock_ms() + site->deadline_ms;
	struct launch launch;
	char groups[4096] = "";
	size_t used = 0;

	note_mounts(sandbox, wish->mounts);
	if (find(sandbox, node, jail, wish, until, fault) == 0)
		return 0;
	if (fault->text[0])
		return -1;
	if (!wish->mounts)
		return sandbox_build(sandbox, node, site, jail, wish, NULL, until, fault);

	for (int i = 0; i < wish->user.ngroups && used < sizeof(groups) - 16; i++)
		used += (size_t)snprintf(groups + used, sizeof(groups) - used, "%s%u", i ? "," : "",
					 (unsigned)wish->user.groups[i]);
	launch_begin(&launch, node, "sandbox", until);
	launch_word(&launch, "jail=%s", jail->name);
	launch_word(&launch, "job=%s", wish->job);
	launch_word(&launch, "uid=%u", (unsigned)wish->user.uid);
	launch_word(&launch, "gid=%u", (unsigned)wish->user.gid);
	launch_word(&launch, "groups=%s", groups);
	launch_word(&launch, "mounts=%s", wish->mounts);
	launch_word(&launch, "script=%s", wish->script);
	if (launch_run(&launch, node, until, fault) < 0)
		return -1;
	if (find(sandbox, node, jail, wish, until, fault) == 0)
		return 0;
	return fault_set(fault, "the sandbox was gone as soon as it was built; ask your administrator");
}
