/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assemble.h: the file systems and namespaces of one sandbox, in a copy of its zygote's template: its root
 * (writable.c), its accounts (accounts.c), and all else (assemble.c).
 */
#ifndef GOJAIL_ASSEMBLE_H
#define GOJAIL_ASSEMBLE_H

#include "common/fault.h"
#include "gojail.h"

#include <stdbool.h>

/* Trees with these flags are not attached: namespaces, and the root, which is attached first. */
#define ASSEMBLE_NO_MOUNT (GOJAIL_TREE_NET | GOJAIL_TREE_NS | GOJAIL_TREE_USER | GOJAIL_TREE_ROOT | GOJAIL_TREE_UPPER)

/* Enters the namespace of that kind: the job's, where it is among the trees, else a new one. Returns 0, or -1 with a
 * fault. */
int enter_or_unshare(const struct gojail_request *request, const struct gojail_tree *trees, uint32_t bit,
		     const char *name, int flag, struct fault *fault);

/*
 * Creates a mount namespace, and in it what the request's flags ask for, and a /dev/shm: the same for each job whose
 * trees are neither namespaces nor a root. Returns the jail's root, O_PATH, or -1 with a fault.
 */
int begin_assembly(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault);

/* Checks that what begin_assembly mounted is still in its place: the owner of the jail's root can rename directories.
 * Returns 0, or -1 with a fault. */
int check_begun(const struct gojail_request *request, struct fault *fault);

/* Notes which mounts begin_assembly has left at the jail's root and in it, for check_begun and may_hide_begun. Returns
 * 0, or -1 with a fault. */
int note_begun(int root, struct fault *fault);

/* Reports whether the calling process has the jail's root, as note_begun has noted it. */
bool is_at_root(void);

/* Reports whether links of the jail's root have led the job's /tmp to another mount since note_begun, such as /dev/shm,
 * which it hides then. */
bool may_hide_begun(void);

/*
 * Adds what depends on the job, or on what the node is called and the jail's root has by now: the host name, /tmp, and
 * the trees, below the jail's open root. Returns 0, or -1 with a fault.
 */
int finish_assembly(int root, const struct gojail_request *request, const struct gojail_tree *trees,
		    struct fault *fault);

/* Reports whether an open file lies on the job's own /tmp, /dev/shm or /dev/pts, as this process mounted them. */
bool is_own_mount(int fd);

/* Returns the open root of the job's own mount of that path, as this process has mounted it, or -1. It stays open. */
int find_own_mount(const char *path);

/*
 * Mounts each GOJAIL_MOUNT_ACCOUNT of the request that the template has in GOJAIL_ACCOUNTS over the jail's own; run is
 * the sandbox's /run. Leaves those that are mounted already: the kernel has dropped a mount only where somebody renamed
 * another file over its mount point, on the jail's storage. Returns 0, or -1 with a fault.
 */
int mount_accounts(int run, const struct gojail_request *request, struct fault *fault);

/*
 * Makes the sandbox's root if it is not the template's: a tree of the request, or an overlay of the template's root
 * with the changes of the job. Returns 0, or -1 with a fault.
 */
int mount_root(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault);

/* Returns the first mount of the request with a flag GOJAIL_MOUNT_..., or NULL. */
const struct gojail_mount *request_find_mount(const struct gojail_request *request, uint32_t how);

/* Returns the first tree of the request with a flag GOJAIL_TREE_..., or NULL. */
const struct gojail_tree *request_find_tree(const struct gojail_request *request, const struct gojail_tree *trees,
					    uint32_t flag);

#endif
