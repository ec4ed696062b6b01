// SPDX-License-Identifier: Apache-2.0

package scripts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestPluginGoes: what required the plugin would keep srun and slurmd from starting. The line is put aside and brought back, and of
// lines in the administrator's files the removal says that they are left.
func TestPluginGoes(t *testing.T) {
	// Neither a directory nor a plugin of this machine is seen, or made.
	const noPlugin = "mkdir /run/upper /run/work; mount -t overlay -o lowerdir=/usr/lib,upperdir=/run/upper,workdir=/run/work overlay /usr/lib\n" +
		"mkdir -p /usr/lib/gojail; mount -t tmpfs tmpfs /usr/lib/gojail\n"
	const line = "'required /usr/lib/gojail/spank_gojail.so state=/x'"
	const own, administrators = "echo " + line + " >/etc/slurm/plugstack.conf.d/gojail.conf\n", "echo " + line + " >/etc/slurm/plugstack.conf\n"
	const told = "gojail: the plugin is removed, and srun, sbatch and slurmd do not start: take out its line, or install gojail-slurm again. It is required in /etc/slurm/plugstack.conf\n"
	const aside, stays = "gojail.conf.removed\n", "gojail.conf\n"
	for _, test := range []struct{ begin, args, want string }{
		{own, "postrm 0", aside}, {own, "postrm 1", stays}, {own, "postrm upgrade 0.2.0-1", stays}, {own, "prerm 0", stays}, {own, "prerm remove", aside},
		{own + "touch /usr/lib/gojail/spank_gojail.so", "postrm 0", stays},
		// Back to a package of 0.1.0, and the rest of this one goes later; or this one alone is purged.
		{own, "prerm remove in-favour gojail-slurm-24.11 0.1.0-1", stays}, {own, "prerm remove in-favour other 1", aside},
		{own + "mkdir -p /run/gojail/jobs/17", "prerm remove in-favour gojail-slurm-24.11 0.1.0-1", stays},
		{own + "touch /usr/lib/gojail/spank_gojail.so", "postrm purge", stays}, {own, "postrm purge", ""},
		{administrators, "postrm 0", told}, {administrators, "postrm remove", told}, {administrators, "postrm 1", ""}, {administrators, "postrm upgrade 0.2.0-1", ""},
		{own + administrators, "postrm 0", told + aside}, {strings.Replace(administrators, "required", "#required", 1), "postrm 0", ""},
		{strings.Replace(administrators, "required", "optional", 1), "postrm 0", ""},
		{own + "mv /etc/slurm/plugstack.conf.d/gojail.conf /etc/slurm/plugstack.conf.d/gojail.conf.removed", "postinst 1", stays},
		{"", "postinst 1", ""}, {"", "postinst 2", ""},
	} {
		m := newMachine(t, noPlugin+test.begin)
		m.addCommand("dpkg-query", "exit 1")
		words := strings.Fields(test.args)
		output, _, err := m.run("ls /etc/slurm/plugstack.conf.d", "gojail-slurm."+words[0], words[1:]...)
		assert.NoError(t, err, test)
		assert.Equal(t, test.want, output, test)
	}
}
