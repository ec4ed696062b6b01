// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
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
			found := slices.DeleteFunc(strings.Split(n.listFindings(), "\n"), func(line string) bool {
				return strings.Contains(line, " optional plugin ") // none of these exists: TestMissingPlugins
			})
			assert.Equal(t, test.want, strings.ReplaceAll(strings.Join(found, "\n"), n.conf+"/", "CONF/"))
		})
	}
}

// TestMissingPlugins has lines of plugstack.conf whose plugin does not exist: a required one keeps Slurm from starting, and
// an optional one is passed over, by some releases without a line in any log.
func TestMissingPlugins(t *testing.T) {
	const (
		required = "FAIL  plugstack: AT: required plugin DIR/x.so does not exist: srun, sbatch and slurmd cannot start; install it, or remove AT"
		optional = "WARN  plugstack: AT: optional plugin DIR/x.so does not exist: jobs run without it, and Slurm 25.11.1 and later log nothing; install it, or remove AT"
	)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "there.so"), nil, 0o644))
	relative := strings.NewReplacer("DIR/", "")
	for name, test := range map[string]struct {
		path     string
		required bool
		release  bool // whether Slurm's plugins are found, and so the directory of relative names
		want     string
	}{
		"required":                    {dir + "/x.so", true, false, required},
		"optional":                    {dir + "/x.so", false, false, optional},
		"required, there":             {dir + "/there.so", true, false, ""},
		"optional, there":             {dir + "/there.so", false, false, ""},
		"required, relative":          {"x.so", true, true, relative.Replace(required)},
		"optional, relative":          {"x.so", false, true, relative.Replace(optional)},
		"relative to nobody knows":    {"x.so", false, false, ""},
		"gojail's, which has its own": {dir + "/spank_gojail.so", false, true, ""},
	} {
		var found []string
		c := &checker{config: &config.Config{Slurm: config.Slurm{Conf: dir, Host: []string{dir}}},
			report: func(f Finding) { found = append(found, f.String()) }}
		conf := node.SlurmConf{Dir: dir, Plugstack: []node.SpankPlugin{{Path: test.path, Required: test.required, At: "AT"}}}
		if test.release {
			n := &checkedNode{dir: t.TempDir()}
			n.writePlugin(t, "auth_munge.so", "0x160508")
			conf.Plugins = []string{n.dir}
		} else if len(node.ReadSlurm(c.config).Dirs) > 0 && !filepath.IsAbs(test.path) {
			continue // a Slurm is installed here
		}
		c.checkOtherLines(conf)
		assert.Equal(t, test.want, strings.ReplaceAll(strings.Join(found, "\n"), dir, "DIR"), name)
	}
}
