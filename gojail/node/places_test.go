// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	libexec := prefix + "/libexec/slurm/slurmstepd"
	require.NoError(t, os.MkdirAll(filepath.Dir(libexec), 0o755))
	require.NoError(t, os.Rename(prefix+"/sbin/slurmstepd", libexec))
	assert.Equal(t, []string{libexec}, findStepd(&config.Config{Slurm: config.Slurm{Host: []string{prefix}}}), "before that of /usr/sbin")
}

// TestPluginDirs is where Slurm's plugins are found, by how a Slurm was built and packaged.
func TestPluginDirs(t *testing.T) {
	top := t.TempDir()
	for _, file := range []string{"/slurm/lib/slurm/auth_munge.so", "/usr/lib64/slurm/auth_slurm.so", "/more/spank_x.so", "/usr/lib/libc.so.6"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(top+file), 0o755))
		require.NoError(t, os.WriteFile(top+file, nil, 0o644))
	}
	build := func(name, flag string) string {
		cmd := exec.Command("cc", "-o", top+"/"+name, "-x", "c", "-", flag)
		cmd.Stdin = strings.NewReader("int main(void) { return 0; }")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return top + "/" + name
	}
	const none = "-Wl,-O1"
	own, of, lib := "/slurm/lib/slurm", "/usr/lib64/slurm", "/usr/lib"
	for name, c := range map[string]struct {
		runpath          string // of the commands; "": none
		configured, libs []string
		want             []string
	}{
		"a build from source":                  {own, nil, []string{lib}, []string{own}},
		"with PREFIX/lib":                      {own + ":" + lib, nil, []string{lib}, []string{own}},
		"which the linker names":               {own, nil, []string{lib, own}, []string{own}},
		"without a RUNPATH":                    {"", nil, []string{lib, of}, []string{of}},
		"without a RUNPATH, and nobody's":      {"", nil, []string{lib}, nil},
		"without a RUNPATH, with PluginDir":    {"", []string{own, "/more"}, []string{lib}, []string{"/more", own}},
		"PluginDir that the linker names":      {"", []string{of}, []string{lib, of}, []string{of}},
		"PluginDir of others, that it names":   {own, []string{"/more"}, []string{"/more"}, []string{own}},
		"a RUNPATH that is gone":               {"/gone", nil, []string{of}, []string{of}},
		"another Slurm's, which is not wanted": {own, nil, []string{of}, []string{own}},
	} {
		in := func(dirs []string) (all []string) {
			for _, dir := range dirs {
				all = append(all, top+dir)
			}
			return all
		}
		flag := none
		if c.runpath != "" {
			flag = "-Wl,--enable-new-dtags,-rpath," + top + strings.ReplaceAll(c.runpath, ":", ":"+top)
		}
		assert.ElementsMatch(t, in(c.want), findPluginDirs([]string{build("srun", flag)}, in(c.configured), in(c.libs)), name)
	}
	assert.Empty(t, findPluginDirs(nil, nil, []string{top + of}), "no command, no Slurm")
}
