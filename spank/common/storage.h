/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage.h: verifies that the storage of a jail answers, and that its template is still what the path of its root
 * leads to. It asks the zygote (launcher/probing.h): a process that accesses storage itself hangs for as long as the
 * storage does not answer.
 */
#ifndef GOJAIL_STORAGE_CLIENT_H
#define GOJAIL_STORAGE_CLIENT_H

#include "common/node.h"
#include "common/site.h"

#include <stdbool.h>
#include <stdint.h>

#define TEMPLATE_REPLACED 1

/*
 * Verifies that the jail has a template whose storage has answered within the last second, and whose root is what its
 * path leads to. Replaces, once, a template that is stale or of another tree by now. anew: an answer from before the
 * call does not count. Returns 0, TEMPLATE_REPLACED, or -1 with a fault.
 */
int storage_prepare_template(const struct node *node, const struct jail *jail, bool anew, int64_t until,
			     struct fault *fault);

/* Verifies that the storage of the jail's template has answered within the last second. Returns 0, or -1 with a fault.
 */
int storage_await(const struct node *node, const struct jail *jail, int64_t until, struct fault *fault);

/* Reports whether the storage of a note, such as NAME.storage, has answered within the last second. */
bool storage_is_recent(int note);

/*
 * Notes, as NAME.storage in a job's directory, the template of the sandbox NAME that is about to be built. To be called
 * before the zygote is asked: if the template is replaced meanwhile, the sandbox counts as one of an earlier template,
 * whose storage is asked by itself.
 */
void storage_note_template(const struct node *node, const char *jail, int job, const char *name);

/*
 * Verifies that the storage of the job's sandbox NAME has answered within the last second. The zygote answers for a
 * sandbox of its own template. A sandbox of an earlier template keeps its tree, perhaps on another server: its own
 * mounts are asked, by a launcher. Returns 0, or -1 with a fault.
 */
int storage_await_job(const struct node *node, const struct jail *jail, const char *job, const char *name,
		      int64_t until, struct fault *fault);

#endif
