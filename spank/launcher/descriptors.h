/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptors.h: the numbers of a zygote's descriptors, which its children know: the stage is at GOJAIL_STAGE_FD, and
 * these follow it.
 */
#ifndef GOJAIL_DESCRIPTORS_H
#define GOJAIL_DESCRIPTORS_H

#include "gojail.h"

#define ZYGOTE_SOCKET_FD (GOJAIL_STAGE_FD + 1)       /* requests for sandboxes */
#define ZYGOTE_PROC_FD (GOJAIL_STAGE_FD + 2)         /* the node's /proc (open_node_proc) */
#define ZYGOTE_STORAGE_FD (GOJAIL_STAGE_FD + 3)      /* questions about the storage (probing.h) */
#define ZYGOTE_NOTE_FD (GOJAIL_STAGE_FD + 4)         /* the file GOJAIL_STORAGE */
#define ZYGOTE_NODE_FD (GOJAIL_STAGE_FD + 5)         /* the node's mount namespace */
#define ZYGOTE_MOUNTS_FD (GOJAIL_STAGE_FD + 6)       /* of the template, which the zygote watches (watch.h) */
#define ZYGOTE_STAGE_MOUNTS_FD (GOJAIL_STAGE_FD + 7) /* and of its stage */
#define ZYGOTE_LAST_FD ZYGOTE_STAGE_MOUNTS_FD

/* The first descriptor of a remote mount (remote.h), above all others. */
#define REMOTE_FIRST_FD 64

#endif
