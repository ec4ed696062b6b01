/* SPDX-License-Identifier: Apache-2.0 */
#include "common/step_options.h"

#include <stdio.h>
#include <string.h>

bool step_options_are_none(const struct step_options *options) { return strcmp(options->jail, "none") == 0; }

int step_options_complete(struct step_options *options, const struct site *site, struct fault *fault)
{
	if (!options->jail[0])
		snprintf(options->jail, sizeof(options->jail), "%s", site->default_jail);
	else if (step_options_are_none(options) && !site->none_allowed)
		return fault_set_request(
			fault, "--jail=none is not allowed at this site; leave the option out, or name a jail");
	if (!step_options_are_none(options))
		return 0;
	if (options->mounts[0])
		return fault_set_request(fault, "--jail-mount needs a jail; give --jail=NAME too");
	if (options->net[0] && strcmp(options->net, "none"))
		return fault_set_request(fault, "--jail-net needs a jail; give --jail=NAME too");
	if (options->root[0] && strcmp(options->root, "none"))
		return fault_set_request(fault, "--jail-root needs a jail; give --jail=NAME too");
	return 0;
}

int step_options_apply(struct step_options *options, const struct site *site, struct jail *jail,
		       struct sandbox_spec *spec, struct fault *fault)
{
	if (site_find_jail(site, options->jail, &spec->user, jail, fault) < 0 ||
	    site_resolve_root(jail, options->root, sizeof(options->root), fault) < 0)
		return -1;
	spec->mounts = options->mounts[0] ? options->mounts : NULL;
	spec->net = options->net[0] ? options->net : jail->net;
	if (strcmp(spec->net, "none") == 0)
		spec->net = NULL;
	spec->root = options->root[0] ? options->root : NULL;
	return 0;
}
