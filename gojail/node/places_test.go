// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
)

// TestPlacesOfSlurm is where gojail looks for what it needs of a Slurm that no package of the distribution has installed: what
// gojail.toml and slurm.conf name comes before all of the distribution's places.
func TestPlacesOfSlurm(t *testing.T) {
	prefix := t.TempDir()
	for _, path := range []string{"bin/srun", "bin/scontrol", "sbin/slurmstepd", "lib/slurm/" + "spank_gojail.so", "stack/spank_other.so"} {
		file := filepath.Join(prefix, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755))
	}
	conf := filepath.Join(prefix, "etc")
	require.NoError(t, os.Mkdir(conf, 0o755))
	for _, c := range []struct {
		name, slurm, plugstack string // lines; the file of the latter
		stack                  []string
	}{
		{"PluginDir", "PluginDir=/nosuch:" + prefix + "/lib/slurm", "plugstack.conf", []string{prefix + "/lib/slurm/spank_gojail.so", "spank_other.so"}},
		{"several of PluginDir", "PluginDir=" + prefix + "/lib/slurm:" + prefix + "/stack", "plugstack.conf",
			[]string{prefix + "/lib/slurm/spank_gojail.so", prefix + "/stack/spank_other.so"}},
		{"PlugStackConfig", "PluginDir=" + prefix + "/stack\nPlugStackConfig=" + prefix + "/stack.conf", "../stack.conf",
			[]string{"spank_gojail.so", prefix + "/stack/spank_other.so"}},
	} {
		require.NoError(t, os.WriteFile(conf+"/slurm.conf", []byte(c.slurm+"\n"), 0o644))
		plugstack := filepath.Join(conf, c.plugstack)
		require.NoError(t, os.WriteFile(plugstack, []byte("required spank_gojail.so\noptional spank_other.so\n"), 0o644))
		configured := &config.Config{Slurm: config.Slurm{Conf: conf, Host: []string{"/nosuch", prefix}}}
		var stack []string
		for _, plugin := range ReadSlurmConf(configured).Plugstack {
			stack = append(stack, plugin.Path)
		}
		assert.Equal(t, c.stack, stack, c.name)
		assert.Equal(t, prefix+"/bin/scontrol", FindSlurmCommand(configured, "scontrol"), c.name)
		commands, dir := FindCommands(configured)
		assert.Equal(t, prefix+"/bin", dir, c.name)
		assert.Contains(t, commands, prefix+"/bin/srun", c.name)
		assert.Equal(t, []string{prefix + "/sbin/slurmstepd"}, findStepd(configured), c.name)
		require.NoError(t, os.Remove(plugstack))
	}
}
