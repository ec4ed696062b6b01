// SPDX-License-Identifier: Apache-2.0

package scripts

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRemovalWaitsForSlurm: what slurm.conf or plugstack.conf names stays, or no part of Slurm starts, or each job fails. The line of the
// package's own file goes with the plugin.
func TestRemovalWaitsForSlurm(t *testing.T) {
	refusal := "gojail: not removed: Slurm would not start, or every job would fail, without what is named in %\n" +
		"gojail: take gojail out there first: \"Remove gojail\" in /usr/share/doc/gojail/docs/operations.md\n"
	if _, err := os.Stat("/usr/lib/gojail/spank_gojail.so"); err != nil {
		refusal += "gojail: the plugin is not installed (any more): where it was removed now, steps start outside of jails, or none does. To go back, install gojail-slurm again\n"
	}
	const conf, stack, own = "/etc/slurm/slurm.conf", "/etc/slurm/plugstack.conf", "/etc/slurm/plugstack.conf.d/gojail.conf"
	for _, test := range []struct{ file, line, named string }{
		{conf, "PluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm:/usr/lib/gojail", conf}, {conf, "plugindir = /usr/lib/gojail:/usr/lib64/slurm # ours", conf},
		{conf, "Prolog=/usr/lib/gojail/prolog-1", conf}, {conf, "JobSubmitPlugins=lua,gojail", conf}, {conf, "jobsubmitplugins = job_submit/gojail", conf},
		{conf, "HealthCheckProgram=/usr/sbin/gojail-healthcheck", conf}, {"/etc/slurm/site.conf", "Prolog=/usr/lib/gojail/prolog-1", "/etc/slurm/site.conf"},
		{stack, "required /usr/lib/gojail/spank_gojail.so state=/x", stack}, {stack, "optional spank_gojail.so", stack},
		{"/run/slurm/conf/slurm.conf", "Prolog=/usr/lib/gojail/prolog-1", "/run/slurm/conf/slurm.conf"},
		{"/etc/slurm/plugstack.conf.d/site.conf", "required /usr/lib/gojail/spank_gojail.so", "/etc/slurm/plugstack.conf.d/site.conf"},
		{own, "required /usr/lib/gojail/spank_gojail.so", ""}, {own + ".removed", "required /usr/lib/gojail/spank_gojail.so", ""},
		{conf, "#Prolog=/usr/lib/gojail/prolog-1", ""}, {conf, "# JobSubmitPlugins=gojail", ""}, {conf, "PluginDir=/usr/lib/gojails", ""}, {conf, "ClusterName=gojail", ""},
		{conf, "NodeName=n1 Features=gojail:debian", ""}, {conf, "", ""},
	} {
		for args, removes := range map[string]bool{"remove": true, "0": true, "check": true, "upgrade 0.2.0-1": false, "1": false} {
			output, _, err := newMachine(t, "mkdir -p /run/slurm/conf; echo '"+test.line+"' >"+test.file).run("", "gojail.prerm", strings.Fields(args)...)
			want := ""
			if removes && test.named != "" {
				want = strings.ReplaceAll(refusal, "%", test.named)
			}
			assert.Equal(t, want, output, "%+v: %s", test, args)
			assert.Equal(t, want == "", err == nil, "%+v: %s", test, args)
		}
	}
}
