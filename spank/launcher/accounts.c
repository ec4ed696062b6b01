/* SPDX-License-Identifier: Apache-2.0 */
/* accounts.c: /etc/passwd, group, shadow and gshadow of a sandbox: the node's entries, then the system accounts of the
 * jail. */
#include "common/fd.h"
#include "common/path.h"
#include "common/syscalls.h"
#include "gojail.h"
#include "launcher/assemble.h"
#include "launcher/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * With --jail-root=range the jail's own file belongs to root there, and packages add their users to it: nothing is
 * mounted over it. In all other sandboxes both must be known, the node's users and those that a package added. The
 * node's come first and win: a look-up by name or id finds them. Nothing in the jail's file is trusted, as users may
 * write it; it is read only if any user may read it, and it is where it seems to be.
 */

#define OWN_MAX (256 << 10) /* bytes of the jail's file that are read */
/* Below are those of packages, and above those of people (adduser.conf(5)); as many lines are looked up. */
#define SYSTEM_IDS 1000

struct text {
	char *bytes; /* ends with a NUL */
	size_t length;
};

/* Reads a regular file, open with O_PATH, up to max bytes. Returns 0 or -1. */
static int read_text(int place, size_t max, struct text *text)
{
	char name[32];
	struct stat st;
	ssize_t got = 0;

	snprintf(name, sizeof(name), "self/fd/%d", place);
	if (place < 0 || fstat(place, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	scoped_fd fd =
		openat(ZYGOTE_PROC_FD, name,
		       O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); /* a lease of the owner's makes nobody wait */
	if ((size_t)st.st_size < max)
		max = (size_t)st.st_size;
	text->bytes = fd < 0 ? NULL : malloc(max + 2);
	for (text->length = 0; text->bytes && text->length < max; text->length += (size_t)got)
		if ((got = read(fd, text->bytes + text->length, max - text->length)) <= 0)
			break;
	if (!text->bytes || got < 0)
		return -1;
	text->bytes[text->length] = '\0';
	return 0;
}

/* Reports whether a line of the text begins with that name and a colon. */
static bool has_name(const char *text, const char *name, size_t length)
{
	for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		if (strncmp(line, name, length) == 0 && line[length] == ':')
			return true;
	return false;
}

/* Reports whether a line "NAME:PASSWORD:ID:..." is of a system user or group, in characters that all programs accept.
 */
static bool is_system_line(const char *line, size_t length)
{
	const char *colon = memchr(line, ':', length), *id;
	char *end;

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			return false;
	if (!colon || colon == line ||
	    strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") !=
		    (size_t)(colon - line) ||
	    line[0] == '-' || !(id = memchr(colon + 1, ':', length - (size_t)(colon + 1 - line))) || id[1] < '0' ||
	    id[1] > '9')
		return false;
	unsigned long number = strtoul(id + 1, &end, 10);
	return *end == ':' && number > 0 && number < SYSTEM_IDS;
}

/* Appends the jail's own system accounts to the node's; a last line without its newline may be cut off. */
static void append_own(struct text *node, const struct text *own)
{
	const char *line = own->bytes, *end;
	int looked_up = 0;
	char *grown = realloc(node->bytes, node->length + own->length + 2);

	if (!grown)
		return;
	node->bytes = grown;
	if (node->length && node->bytes[node->length - 1] != '\n')
		node->bytes[node->length++] = '\n';
	node->bytes[node->length] = '\0';
	for (; (end = memchr(line, '\n', own->length - (size_t)(line - own->bytes))); line = end + 1) {
		size_t length = (size_t)(end - line);

		if (!is_system_line(line, length) || looked_up++ >= SYSTEM_IDS ||
		    has_name(node->bytes, line, strcspn(line, ":")))
			continue;
		memcpy(node->bytes + node->length, line, length + 1);
		node->length += length + 1;
		node->bytes[node->length] = '\0';
	}
}

/*
 * Creates a file in the sandbox's /run with that text, and the owner and mode of the node's file. Returns it as a
 * detached mount, or -1.
 */
static int make_file(int run, const char *name, const struct text *text, const struct stat *like, uint64_t attributes)
{
	scoped_fd file = openat(run, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int tree = -1;

	if (file < 0)
		return -1;
	if (write(file, text->bytes, text->length) == (ssize_t)text->length &&
	    fchown(file, like->st_uid, like->st_gid) == 0 && fchmod(file, like->st_mode & 0777) == 0)
		tree = k_open_tree(run, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (tree >= 0 && k_mount_setattr(tree, attributes) < 0)
		close_fd(&tree);
	return tree;
}

static int mount_one(int root, int run, const struct gojail_mount *mount, int place, struct fault *fault)
{
	const char *path = mount->destination, *name = strrchr(path, '/') + 1;
	struct text node = {0}, own = {0};
	struct stat like, st = {0}, of_run;
	int result = -1;

	/* Users may write the jail's /etc: a link there could lead root to a file that they may not read. The file is
	 * mounted on the link. */
	scoped_fd at = open_in_root(root, path, RESOLVE_NO_SYMLINKS);
	bool linked = at < 0 && errno == ELOOP;
	if (linked)
		at = open_target_in_root(root, path, 0);
	if (at < 0)
		return fault_set(fault, "mount target %s does not exist in the jail: %s; create it with: gojail init",
				 path, strerror(errno));
	if (fstat(at, &st) == 0 && fstat(run, &of_run) == 0 && st.st_dev == of_run.st_dev)
		return 0; /* it is mounted already */
	if (fstat(place, &like) == 0 && read_text(place, (size_t)like.st_size, &node) == 0) {
		if (!linked && (st.st_mode & S_IROTH) && read_text(at, OWN_MAX, &own) == 0)
			append_own(&node, &own);
		scoped_fd tree = make_file(run, name, &node, &like, mount->attributes);
		result = tree < 0 ? -1 : k_move_mount(tree, at);
		unlinkat(run, name, 0); /* a file without a name cannot be mounted, one that is mounted needs none */
	}
	if (result < 0)
		fault_set(fault, "cannot mount the node's %s in the jail: %s", path, strerror(errno));
	free(node.bytes);
	free(own.bytes);
	return result;
}

int mount_accounts(int run, const struct gojail_request *request, struct fault *fault)
{
	scoped_fd dir = openat(run, GOJAIL_ACCOUNTS, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	scoped_fd root = dir < 0 ? -1 : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0 && errno == ENOENT)
		return 0; /* the jail has none of the node's */
	if (root < 0)
		return fault_set(fault, "cannot open the jail's root: %s", strerror(errno));
	for (uint32_t i = 0; i < request->nmounts; i++) {
		const struct gojail_mount *mount = &request->mounts[i];

		if (!(mount->how & GOJAIL_MOUNT_ACCOUNT))
			continue;
		scoped_fd place = openat(dir, strrchr(mount->destination, '/') + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);

		if (place >= 0 && mount_one(root, run, mount, place, fault) < 0)
			return -1;
	}
	return 0;
}
