/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote.h: the process that lives in a finished template and forks a holder for each sandbox; and, while nobody asks,
 * a spare, which becomes the holder of the next. The other side of its socket is common/zygote_client.h.
 */
#ifndef GOJAIL_ZYGOTE_H
#define GOJAIL_ZYGOTE_H

#include "common/fault.h"
#include "launcher/origin.h"

/*
 * Creates a socket in the jail's state directory, under a temporary name: the one that is there may have a server.
 * Returns it, or -1 with a fault.
 */
int listen_in(int dir, const char *name, struct fault *fault);

/* Gives what was created under the temporary name its own. Returns 0, or -1 with a fault. */
int give_name(int dir, const char *name, struct fault *fault);

/* Creates a file likewise. Returns it, or -1 with a fault. */
int create_in(int dir, const char *name, struct fault *fault);

/*
 * Its descriptors, besides the stage at GOJAIL_STAGE_FD: the socket, and the node's /proc (open_node_proc). The others
 * are probing.h's: a socket, its file, and the node's mount namespace; and those of remote.h.
 */
#define ZYGOTE_SOCKET_FD (GOJAIL_STAGE_FD + 1)
#define ZYGOTE_PROC_FD (GOJAIL_STAGE_FD + 2)
#define ZYGOTE_STORAGE_FD (GOJAIL_STAGE_FD + 3)
#define ZYGOTE_NOTE_FD (GOJAIL_STAGE_FD + 4)
#define ZYGOTE_NODE_FD (GOJAIL_STAGE_FD + 5)
#define ZYGOTE_MOUNTS_FD (GOJAIL_STAGE_FD + 6)       /* of the template, which the zygote watches (watch.h) */
#define ZYGOTE_STAGE_MOUNTS_FD (GOJAIL_STAGE_FD + 7) /* and of its stage */
#define ZYGOTE_LAST_FD ZYGOTE_STAGE_MOUNTS_FD

/* Serves for ever, in the template, after find_template_mounts, with these descriptors and no others. */
__attribute__((noreturn)) void serve_as_zygote(const struct origin *origin);

#endif
