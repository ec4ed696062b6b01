/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/sockets.h"

#include "common/confine.h"
#include "common/fd.h"
#include "common/path.h"
#include "launcher/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Reports whether the uppermost mount at a path is a socket. Only that of a file of local storage can be one, and no
 * other is opened: it may hang. */
static bool is_socket(int root, const struct mount_line *mount)
{
	scoped_fd at = strcmp(mount->root, "/") && mountinfo_is_local(mount->type) ?
			       open_in_root(root, mount->path, RESOLVE_NO_SYMLINKS) :
			       -1;
	struct stat st;

	return at >= 0 && fstat(at, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Removes the uppermost mount at a path of this namespace. Returns 0, or -1 with errno. */
static int remove_mount(int root, char *path)
{
	char *slash = strrchr(path, '/');

	*slash = '\0';
	scoped_fd dir = open_in_root(root, *path ? path : "/", RESOLVE_NO_SYMLINKS);
	return dir < 0 || fchdir(dir) < 0 ? -1 : umount2(slash + 1, MNT_DETACH | UMOUNT_NOFOLLOW);
}

/* Finds the sockets that mountinfo lists, and removes them if that is wanted. Returns how many it found, or -1 with
 * errno. */
static int find_sockets(int proc, bool removed)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct mount_table table;
	int found = root < 0 ? -1 : mountinfo_read_own(proc, &table);

	for (size_t i = 0; found >= 0 && i < table.count; i++)
		if (is_socket(root, &table.list[i]))
			found = removed && remove_mount(root, table.list[i].path) < 0 ? -1 : found + 1;
	if (root >= 0)
		mountinfo_free(&table);
	return found;
}

int hide_sockets(int proc, bool alone, struct fault *fault)
{
	int left = find_sockets(proc, false);

	if (left > 0 && !alone && unshare(CLONE_NEWNS) < 0)
		left = -1;
	/* Until none is found: one may have covered another. */
	for (int attempt = 0; attempt < 8 && left > 0; attempt++)
		left = find_sockets(proc, true);
	if (left > 0)
		errno = EBUSY;
	if (left != 0 || chdir("/") < 0)
		return fault_set(fault, "cannot hide munge's socket from the command: %s", strerror(errno));
	return 0;
}

#define FIELD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(test, value, yes, no) BPF_JUMP(BPF_JMP | BPF_##test | BPF_K, value, yes, no)
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)

int refuse_sockets(struct fault *fault)
{
	enum { X32 = 0x40000000, TYPE = 0xf }; /* without SOCK_CLOEXEC and SOCK_NONBLOCK, socket(2) */
	/* The low halves of arguments, which is all that the kernel looks at: little endian. Other conventions of calls
	 * are refused. */
	struct sock_filter filter[] = {
		FIELD(arch),
		IF(JEQ, CONFINE_ARCHITECTURE, 0, 10),
		FIELD(nr),
		IF(JGE, X32, 8, 0),
		IF(JEQ, SYS_socket, 2, 0),
		IF(JEQ, SYS_socketpair, 3, 0),
		RETURN(SECCOMP_RET_ALLOW),
		FIELD(args[0]),
		IF(JEQ, AF_UNIX, 4, 5),
		FIELD(args[1]), /* a pair of datagram sockets can send to others, too */
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TYPE),
		IF(JEQ, SOCK_DGRAM, 1, 2),
		RETURN(SECCOMP_RET_ERRNO | ENOSYS),
		RETURN(SECCOMP_RET_ERRNO | EAFNOSUPPORT),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) < 0)
		return fault_set(fault, "cannot keep the command from Unix sockets: %s", strerror(errno));
	return 0;
}
