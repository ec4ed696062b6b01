/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote.h: the process that lives in a finished template and forks a holder for each sandbox; and, while nobody asks,
 * a spare, which becomes the holder of the next. The other side of its socket is common/zygote_client.h.
 */
#ifndef GOJAIL_ZYGOTE_H
#define GOJAIL_ZYGOTE_H

#include "launcher/origin.h"

/* Serves for ever, in the template, after find_template_mounts, with the descriptors of descriptors.h and no others. */
__attribute__((noreturn)) void serve_as_zygote(const struct origin *origin);

#endif
