/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote.h: the process that lives in a finished template and forks a holder for each sandbox; and, while nobody asks, a spare,
 * which becomes the holder of the next. The other side of its socket is common/zygote_client.h.
 */
#ifndef GOJAIL_ZYGOTE_H
#define GOJAIL_ZYGOTE_H

#include "common/fault.h"

/* Creates the socket in the jail's state directory, before the launcher enters a new namespace. Returns it, or -1 with a fault. */
int listen_as_zygote(int dir, struct fault *fault);

/* Its descriptors, besides the stage at GOJAIL_STAGE_FD: the socket, and the node's /proc (open_node_proc). */
#define ZYGOTE_SOCKET_FD (GOJAIL_STAGE_FD + 1)
#define ZYGOTE_PROC_FD (GOJAIL_STAGE_FD + 2)

/* Serves for ever, in the template, after find_template_mounts, with these descriptors and no others. */
__attribute__((noreturn)) void serve_as_zygote(void);

#endif
