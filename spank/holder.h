/* SPDX-License-Identifier: Apache-2.0 */
/* holder.h: the process that holds one sandbox. */
#ifndef GOJAIL_HOLDER_H
#define GOJAIL_HOLDER_H

/* A child of the zygote's: takes a request from talk, and is the holder from there on (include/gojail.h). */
__attribute__((noreturn)) void holder_run(int talk);

#endif
