/* SPDX-License-Identifier: Apache-2.0 */
#include "common/template.h"

#include "common/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int template_dir(const struct node *node, const char *jail, struct fault *fault)
{
	char path[GOJAIL_PATH_MAX + GOJAIL_NAME_MAX + 16];
	int fd;

	snprintf(path, sizeof(path), "%s/jails", node->state);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/jails/%s", node->state, jail);
	mkdir(path, 0700);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		fault_set(fault, "cannot open %s: %s; is the state directory full or read-only?",
			  path, strerror(errno));
	return fd;
}

int template_find(const struct node *node, const char *jail, struct record *zygote)
{
	char path[GOJAIL_PATH_MAX + GOJAIL_NAME_MAX + 16];

	snprintf(path, sizeof(path), "%s/jails/%s/zygote", node->state, jail);
	return record_find(AT_FDCWD, path, zygote);
}

int template_get(const struct node *node, const struct jail *jail, int64_t until,
		 struct record *zygote, struct fault *fault)
{
	struct launch launch;

	/* Configured differently since it was assembled: another one is made. */
	if (template_find(node, jail->name, zygote) == 0 && strcmp(zygote->key, jail->key) == 0)
		return 0;
	launch_begin(&launch, node, "template", until);
	launch_word(&launch, "jail=%s", jail->name);
	launch_word(&launch, "key=%s", jail->key);
	if (launch_run(&launch, node, until, fault) < 0)
		return -1;
	if (template_find(node, jail->name, zygote) == 0)
		return 0;
	return fault_set(fault, "the zygote of jail \"%s\" ended as soon as it was started; "
				"ask your administrator", jail->name);
}
