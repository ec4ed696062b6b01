/* SPDX-License-Identifier: Apache-2.0 */
/* userns.h: the user namespace of --jail-root. */
#ifndef GOJAIL_USERNS_H
#define GOJAIL_USERNS_H

#include "fault.h"

#include <sys/types.h>

/*
 * A descriptor of a user namespace of that user (its owner may enter it:
 * user_namespaces(7)), where uid 0 is that user and no other id means anybody. Made
 * by a child, for the caller stays the node's root; it is there for as long as the
 * descriptor is. -1 with a fault.
 */
int userns_make(uid_t uid, gid_t gid, struct fault *fault);

#endif
