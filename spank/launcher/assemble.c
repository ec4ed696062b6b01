/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/assemble.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/syscalls.h"
#include "launcher/remount.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The mounts that are the job's own, such as /tmp, with their ids: the owner of the jail's root can rename the
 * directory with one, and a path then leads to something else.
 */
static struct {
	uint64_t id;
	const char *path;
	int fd;
} own[8];
static size_t own_count;

/* Remembers an open mount, which stays open, as one of the job's own. Returns 0, or -1 with a fault. */
static int remember_own(int mount, const char *path, struct fault *fault)
{
	if (own_count < sizeof(own) / sizeof(own[0]) && (own[own_count].id = read_mount_id(mount))) {
		own[own_count].path = path;
		own[own_count++].fd = mount;
		return 0;
	}
	return fault_set(fault, "cannot find out which mount is %s in the jail: %s", path, strerror(errno));
}

int find_own_mount(const char *path)
{
	for (size_t i = own_count; i > 0; i--)
		if (strcmp(own[i - 1].path, path) == 0)
			return own[i - 1].fd;
	return -1;
}

/* Reports whether a job has a mount of its own at a path. */
static bool is_own_path(const char *path)
{
	return strcmp(path, "/tmp") == 0 || strcmp(path, "/dev/shm") == 0 || strcmp(path, "/dev/pts") == 0;
}

bool is_own_mount(int fd)
{
	uint64_t id = read_mount_id(fd);

	for (size_t i = 0; i < own_count && id; i++)
		if (own[i].id == id)
			return true;
	return false;
}

static uint64_t root_id; /* of the mount whose root is the jail's; 0 until note_begun */
static bool elsewhere;   /* something was mounted on another one since */

int note_begun(int root, struct fault *fault)
{
	root_id = read_mount_point(root, "");
	return root_id ? note_template_mounts(fault) :
			 fault_set(fault, "cannot find out which mount is the jail's root: %s", strerror(errno));
}

bool is_at_root(void) { return root_id && read_mount_point(AT_FDCWD, "/") == root_id; }

bool may_hide_begun(void) { return elsewhere; }

/* Notes where a mount of the job's own is about to go. */
static void note_place(int at)
{
	if (at >= 0 && root_id && read_mount_id(at) != root_id)
		elsewhere = true;
}

/* Attaches a new file system to a directory below an open one, or to that with "". Returns its root, or -1 with a
 * fault.
 */
static int mount_at(int at, const char *name, const struct gojail_mount *mount, const char *path, struct fault *fault)
{
	int new_mount = at < 0 ? -1 : k_new_mount(mount->type, mount->options, mount->attributes);

	if (new_mount < 0 || k_move_mount_at(new_mount, "", at, name) < 0) {
		fault_set(fault, "cannot mount a private %s in the jail: %s%s", path, strerror(errno),
			  errno == ENOENT ? "; create it with: gojail init" : "");
		close_fd(&new_mount);
	}
	return new_mount;
}

/* Attaches a new file system to a directory below the jail's root, wherever its symbolic links lead. Returns as
 * mount_at.
 */
static int mount_in_root(int root, const struct gojail_mount *mount, const char *path, struct fault *fault)
{
	scoped_fd at = root < 0 ? -1 : open_in_root(root, path, 0);

	if (is_own_path(path))
		note_place(at);
	return mount_at(at, "", mount, path, fault);
}

/*
 * Creates a mount point for the batch script's directory, alone in its parent, so that other jobs' do not show. Returns
 * -1 with a fault.
 */
static int make_lone_target(int root, const struct gojail_request *request, const char *destination,
			    struct fault *fault)
{
	const struct gojail_mount *mount = request_find_mount(request, GOJAIL_MOUNT_SCRIPT);
	char parent[GOJAIL_PATH_MAX], *slash;
	int at;

	snprintf(parent, sizeof(parent), "%s", destination);
	slash = strrchr(parent, '/');
	if (!mount || !slash || slash == parent)
		return fault_set(fault, "%s is not a directory for batch scripts", destination);
	*slash++ = '\0';
	scoped_fd new_mount = mount_in_root(root, mount, parent, fault);
	if (new_mount < 0)
		return -1;
	if (access(GOJAIL_SLURM_CACHE, F_OK) == 0 &&
	    symlinkat(GOJAIL_SLURM_CACHE, new_mount, GOJAIL_SLURM_CACHE_LINK) < 0)
		return fault_set(fault, "cannot create %s/" GOJAIL_SLURM_CACHE_LINK " in the jail: %s", parent,
				 strerror(errno));
	/* In what was mounted, wherever the jail's symlinks lead by now. */
	at = mkdirat(new_mount, slash, 0755) < 0 ?
		     -1 :
		     openat(new_mount, slash, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return at < 0 ? fault_set(fault, "cannot create %s in the jail: %s", destination, strerror(errno)) : at;
}

/* Opens the mount target of a tree; whatever symbolic links the jail has, they end in it. Returns -1 with a fault. */
static int open_target(int root, const struct gojail_tree *tree, struct fault *fault)
{
	int at = root < 0 ? -1 :
			    open_in_root(root, tree->destination,
					 tree->flags & GOJAIL_TREE_EXACT ? RESOLVE_NO_SYMLINKS : 0);

	return at < 0 ? fault_set(fault, "mount target %s does not exist in the jail: %s; create it there first",
				  tree->destination, strerror(errno)) :
			at;
}

static int attach_tree(int root, const struct gojail_request *request, const struct gojail_tree *tree,
		       struct fault *fault)
{
	scoped_fd at = tree->flags & GOJAIL_TREE_ALONE ? make_lone_target(root, request, tree->destination, fault) :
							 open_target(root, tree, fault);

	if (at < 0 || (is_own_path(tree->destination) && remember_own(tree->fd, tree->destination, fault) < 0))
		return -1;
	if (is_own_path(tree->destination))
		note_place(at);
	if (k_move_mount(tree->fd, at) < 0)
		return fault_set(fault, "cannot mount on %s in the jail: %s%s", tree->destination, strerror(errno),
				 errno == ENOTDIR || errno == EINVAL ?
					 "; a directory goes on a directory, a file on a file" :
					 "");
	return 0;
}

int enter_or_unshare(const struct gojail_request *request, const struct gojail_tree *trees, uint32_t bit,
		     const char *name, int flag, struct fault *fault)
{
	if (!(request->flags & bit))
		return 0;
	for (uint32_t i = 0; i < request->ntrees; i++)
		if ((trees[i].flags & GOJAIL_TREE_NS) && strcmp(trees[i].destination, name) == 0) {
			if (setns(trees[i].fd, flag) == 0)
				return 0;
			return fault_set(fault, "cannot enter the job's %s namespace: %s", name, strerror(errno));
		}
	return unshare(flag) == 0 ? 0 : fault_set(fault, "cannot create a %s namespace: %s", name, strerror(errno));
}

/* Enters the job's network namespace, or makes it; *own says whether there is one. Returns 0, or -1 with a fault. */
static int enter_net(const struct gojail_request *request, const struct gojail_tree *trees, bool *own,
		     struct fault *fault)
{
	const struct gojail_tree *net = request_find_tree(request, trees, GOJAIL_TREE_NET);

	*own = request->flags & GOJAIL_REQUEST_NET;
	if (*own && unshare(CLONE_NEWNET) < 0)
		return fault_set(fault, "cannot create a network namespace: %s", strerror(errno));
	if (net) {
		*own = true;
		if (setns(net->fd, CLONE_NEWNET) < 0)
			return fault_set(fault, "cannot enter the job's network: %s", strerror(errno));
	}
	return 0;
}

/*
 * Finds the owner, on the node, of the files of the jail's root: root, or with --jail-root=range the ids in the tree's
 * destination.
 */
static int find_root_ids(const struct gojail_request *request, const struct gojail_tree *trees, unsigned *uid,
			 unsigned *gid, struct fault *fault)
{
	const struct gojail_tree *range = request_find_tree(request, trees, GOJAIL_TREE_USER);

	*uid = *gid = 0;
	if (range && sscanf(range->destination, "%u %u", uid, gid) != 2)
		return fault_set(fault, "the zygote was sent a damaged request");
	return 0;
}

/* Mounts the job's own /run. What programs leave there ends with the sandbox: no other job's root is to find it. */
static int mount_run(const struct gojail_request *request, const struct gojail_tree *trees,
		     const struct gojail_mount *mount, struct fault *fault)
{
	struct gojail_mount run = *mount;
	const size_t used = strlen(run.options);
	unsigned uid, gid;

	if (find_root_ids(request, trees, &uid, &gid, fault) < 0)
		return -1;
	if (uid && snprintf(run.options + used, sizeof(run.options) - used, "%suid=%u,gid=%u", used ? "," : "", uid,
			    gid) >= (int)(sizeof(run.options) - used))
		return fault_set(fault, "the zygote was sent a damaged request");
	scoped_fd new_mount = remount_over(&run, fault);
	if (new_mount < 0)
		return -1;
	/* Root of a range has the jail's own accounts. */
	return uid ? 0 : mount_accounts(new_mount, request, fault);
}

/* The mount of the template that was opened last: file systems in one follow one another. */
struct opened {
	const char *path; /* NULL: none */
	int fd;
};

/* Mounts a file system on a directory in one of the template's mounts. Returns 0, or -1 with a fault. */
static int mount_in_template(const struct gojail_mount *mount, struct opened *in, struct fault *fault)
{
	const char *path = find_replaceable(mount->destination), *name = path ? mount->destination + strlen(path) : "";

	if (name[0] != '/')
		return fault_set(fault, "the zygote was sent a damaged request");
	if (in->path != path) {
		close_fd(&in->fd);
		in->path = path;
		in->fd = open_template_mount(path, fault);
	}
	if (in->fd < 0)
		return -1;
	name++;
	if (mount->how & GOJAIL_MOUNT_MKDIR)
		mkdirat(in->fd, name, 0755);
	scoped_fd new_mount = mount_at(in->fd, name, mount, mount->destination, fault);
	if (new_mount < 0)
		return -1;
	return is_own_path(mount->destination) ? remember_own(take_fd(&new_mount), mount->destination, fault) : 0;
}

/*
 * Reports whether a file system belongs on a directory in one of the template's mounts, whose directories are gojail's
 * own: of each sandbox, or of the job. Its place is found from that mount: the owner of the jail's root can rename
 * /dev.
 */
static bool is_in_template(const struct gojail_mount *mount)
{
	return (mount->how & GOJAIL_MOUNT_IN) ||
	       ((mount->how & GOJAIL_MOUNT_JOB) && find_replaceable(mount->destination));
}

/* Mounts in their order what any sandbox of the jail has of its own, whatever the job is. Returns 0, or -1 with a
 * fault. */
static int mount_planned(const struct gojail_request *request, const struct gojail_tree *trees, bool own_net,
			 struct fault *fault)
{
	const uint32_t left =
		(own_net ? 0 : GOJAIL_MOUNT_NET) | (request->flags & GOJAIL_REQUEST_SHARED ? GOJAIL_MOUNT_JOB : 0);
	struct opened in = {NULL, -1};
	int result = 0;

	for (uint32_t i = 0; i < request->nmounts && result == 0; i++) {
		const struct gojail_mount *mount = &request->mounts[i];

		if (mount->how & left)
			continue;
		if (mount->how & GOJAIL_MOUNT_OVER) {
			close_fd(&in.fd);
			in.path = NULL;
			/* The files of GOJAIL_MOUNT_ACCOUNT are made in /run, and come with it. */
			if (strcmp(mount->destination, "/run") == 0) {
				result = mount_run(request, trees, mount, fault);
			} else {
				scoped_fd new_mount = remount_over(mount, fault);
				result = new_mount < 0 ? -1 : 0;
			}
		} else if (is_in_template(mount)) {
			result = mount_in_template(mount, &in, fault);
		}
	}
	close_fd(&in.fd);
	return result;
}

/* Mounts what a job has one of where links of the jail's root lead by now. Returns 0, or -1 with a fault. */
static int mount_of_job(int root, const struct gojail_request *request, struct fault *fault)
{
	for (uint32_t i = 0; i < request->nmounts && !(request->flags & GOJAIL_REQUEST_SHARED); i++) {
		const struct gojail_mount *mount = &request->mounts[i];

		if (!(mount->how & GOJAIL_MOUNT_JOB) || is_in_template(mount))
			continue;
		scoped_fd new_mount = mount_in_root(root, mount, mount->destination, fault);
		if (new_mount < 0 || remember_own(take_fd(&new_mount), mount->destination, fault) < 0)
			return -1;
	}
	return 0;
}

int begin_assembly(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault)
{
	bool own_net;
	int root;

	if (unshare(CLONE_NEWNS) < 0)
		return fault_set(fault, "cannot create a mount namespace: %s", strerror(errno));
	if (mount_root(request, trees, fault) < 0)
		return -1;
	if (enter_or_unshare(request, trees, GOJAIL_REQUEST_IPC, "ipc", CLONE_NEWIPC, fault) < 0 ||
	    enter_net(request, trees, &own_net, fault) < 0 || mount_planned(request, trees, own_net, fault) < 0)
		return -1;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root >= 0 ? root : fault_set(fault, "cannot open the jail's root: %s", strerror(errno));
}

/* Reports whether a sandbox without a network of its own has mounted something over one of the template's mounts, or in
 * it. */
static bool has_mount_in(const struct gojail_request *request, const char *path)
{
	for (uint32_t i = 0; i < request->nmounts; i++) {
		const struct gojail_mount *mount = &request->mounts[i];
		const char *in = mount->how & (GOJAIL_MOUNT_OVER | GOJAIL_MOUNT_IN | GOJAIL_MOUNT_JOB) ?
					 find_replaceable(mount->destination) :
					 NULL;

		if (in && strcmp(in, path) == 0 && !(mount->how & GOJAIL_MOUNT_NET))
			return true;
	}
	return false;
}

int check_begun(const struct gojail_request *request, struct fault *fault)
{
	static const char *const mounted[] = {"/proc", "/sys", "/dev"};

	for (size_t i = 0; i < sizeof(mounted) / sizeof(mounted[0]); i++)
		if (has_mount_in(request, mounted[i]) && check_template_mount(mounted[i], fault) < 0)
			return -1;
	scoped_fd run = open_template_mount("/run", fault);
	return run < 0 ? -1 : mount_accounts(run, request, fault);
}

int finish_assembly(int root, const struct gojail_request *request, const struct gojail_tree *trees,
		    struct fault *fault)
{
	/* A new one has the host name that the node has now. */
	if (enter_or_unshare(request, trees, GOJAIL_REQUEST_UTS, "uts", CLONE_NEWUTS, fault) < 0 ||
	    mount_of_job(root, request, fault) < 0)
		return -1;
	for (uint32_t i = 0; i < request->ntrees; i++)
		if (!(trees[i].flags & ASSEMBLE_NO_MOUNT) && attach_tree(root, request, &trees[i], fault) < 0)
			return -1;
	return 0;
}

const struct gojail_mount *request_find_mount(const struct gojail_request *request, uint32_t how)
{
	for (uint32_t i = 0; i < request->nmounts; i++)
		if (request->mounts[i].how & how)
			return &request->mounts[i];
	return NULL;
}

const struct gojail_tree *request_find_tree(const struct gojail_request *request, const struct gojail_tree *trees,
					    uint32_t flag)
{
	for (uint32_t i = 0; i < request->ntrees; i++)
		if (trees[i].flags & flag)
			return &trees[i];
	return NULL;
}
