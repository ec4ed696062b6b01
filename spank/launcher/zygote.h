/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote.h: the process that lives in a finished template and forks a holder for each sandbox; and when nobody asks a spare,
 * which is the holder of the next. The other side of its socket is common/zygote_client.h.
 */
#ifndef GOJAIL_ZYGOTE_H
#define GOJAIL_ZYGOTE_H

#include "common/fault.h"

/* Opens the socket in the jail's state directory; the launcher, before it unshares. */
int listen_as_zygote(int dir, struct fault *fault);

/* Its descriptors, besides the stage at GOJAIL_STAGE_FD: the socket, and the node's /proc (open_node_proc). */
#define ZYGOTE_SOCKET_FD (GOJAIL_STAGE_FD + 1)
#define ZYGOTE_PROC_FD (GOJAIL_STAGE_FD + 2)

/* Serves for ever, inside the template after find_template_mounts, with just these descriptors. */
__attribute__((noreturn)) void serve_as_zygote(void);

#endif
