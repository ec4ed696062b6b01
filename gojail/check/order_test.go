// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// orders are lines before and after gojail's in plugstack.conf, on a release of Slurm, and what the check says of them.
var orders = map[string]struct{ release, before, after, want string }{
	"required, which may keep gojail out": {"0x160508", "required /bin/true\n", "",
		"WARN  plugstack: /bin/true is required and comes before gojail: where it returns a positive number, Slurm 22.05.8 does not call gojail: " +
			"if it does so in both task_init_privileged and task_init, tasks run outside their jail; write optional in its line, or move it below gojail's " +
			"if it neither mounts nor prepares files of the job"},
	"required, which may not":   {"0x190500", "required /bin/true\n", "", ""},
	"before, as they are meant": {"0x160508", "optional /lib/spank_pyxis.so\noptional /lib/auks.so\noptional /bin/mount\n", "", ""},
	"after, nothing of mounts":  {"0x160508", "", "optional lua.so /etc/slurm/lua.d/*\nrequired /bin/true\noptional /nosuch/use-env.so\n", ""},
	"pyxis after": {"0x190500", "", "include plugstack.conf.d/*.conf\n",
		"WARN  plugstack: CONF/plugstack.conf.d/pyxis.conf line 1: /lib/spank_pyxis.so comes after gojail and " +
			"looks up and unpacks containers on the node, not in the jail; move its line before gojail's"},
	"auks after": {"0x160508", "", "optional /lib/auks.so default=enabled\n",
		"WARN  plugstack: CONF/plugstack.conf line 2: /lib/auks.so comes after gojail and " +
			"writes the user's tickets to the node's /tmp, which tasks in a jail do not see; move its line before gojail's"},
	"private /tmp after": {"0x160508", "", "optional /lib/private-tmpdir.so base=/scratch mount=/tmp\n",
		"WARN  plugstack: CONF/plugstack.conf line 2: /lib/private-tmpdir.so comes after gojail and " +
			"mounts a /tmp that tasks in a jail do not see, and --output below /tmp goes there; move its line before gojail's"},
	"unknown, but mounts, after": {"0x160508", "", "optional /usr/bin/unshare\n",
		"WARN  plugstack: CONF/plugstack.conf line 2: /usr/bin/unshare comes after gojail and " +
			"changes mounts: tasks in a jail do not see them, and files of --output may lie on them; move its line before gojail's"},
}

func TestOrderOfPlugins(t *testing.T) {
	for name, test := range orders {
		t.Run(name, func(t *testing.T) {
			n := newGoodNode(t)
			require.NoError(t, os.Mkdir(n.conf+"/plugstack.conf.d", 0o755))
			n.writeFile(t, "slurm/plugstack.conf.d/pyxis.conf", "optional /lib/spank_pyxis.so\n", 0o644)
			n.writePlugin(t, "lib/spank_gojail.so", test.release)
			n.writePlugin(t, "plugins/auth_munge.so", test.release)
			n.writeFile(t, "slurm/plugstack.conf", test.before+n.readFile(t, "slurm/plugstack.conf")+test.after, 0o644)
			assert.Equal(t, test.want, strings.ReplaceAll(n.listFindings(), n.conf+"/", "CONF/"))
		})
	}
}
