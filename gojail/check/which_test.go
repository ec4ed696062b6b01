// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
)

// TestWhichSlurm has layouts of a Slurm, and of two on one host, with the slurmd that runs, and what the check says.
func TestWhichSlurm(t *testing.T) {
	const (
		first  = "/opt/slurm"         // a link to the next
		real   = "/opt/slurm-25.05.3" // with plugins in lib/slurm and etc/slurm.conf
		other  = "/usr/local"         // likewise
		own    = "OK    slurm: " + first + "/etc/slurm.conf (conf in [slurm]), commands of " + first + "/bin (host in [slurm]), plugins of " + first + "/lib/slurm (PluginDir), release 25.05.3"
		conf   = "WARN  slurm: slurmd (process 77) reads " + other + "/etc/slurm.conf, but gojail reads " + first + "/etc/slurm.conf; write conf = \"" + other + "/etc\" in [slurm] of /etc/gojail/gojail.toml"
		prefix = "WARN  slurm: slurmd (process 77) is " + other + "/sbin/slurmd, but jails and this check take the commands and plugins of " + first + "/bin; write host = [\"" + other + "\"] in [slurm] of /etc/gojail/gojail.toml"
	)
	top := t.TempDir()
	for _, dir := range []string{real, other} {
		for _, file := range []string{"/bin/srun", "/bin/scontrol", "/sbin/slurmd", "/etc/slurm.conf", "/etc/gpu.conf", "/lib/slurm/x"} {
			require.NoError(t, os.MkdirAll(filepath.Dir(top+dir+file), 0o755))
			require.NoError(t, os.WriteFile(top+dir+file, []byte("#!/bin/sh\n"), 0o755))
		}
		(&checkedNode{dir: top + dir}).writePlugin(t, "lib/slurm/auth_munge.so", "0x190503")
	}
	require.NoError(t, os.Symlink(filepath.Base(real), top+first))
	for name, test := range map[string]struct {
		cmdline, environ, exe string // of slurmd; exe "": none runs
		want                  string
	}{
		"no slurmd":                     {"", "", "", own},
		"its own":                       {"slurmd -D", "", real + "/sbin/slurmd", own},
		"by -f":                         {"slurmd -D -f TOP/opt/slurm-25.05.3/etc/slurm.conf", "", real + "/sbin/slurmd", own},
		"by -f, among others":           {"slurmd -Df TOP/opt/slurm/etc/slurm.conf -vv", "", real + "/sbin/slurmd", own},
		"upgraded":                      {"slurmd", "", real + "/sbin/slurmd (deleted)", own},
		"another file by -f":            {"slurmd -N n1 -fTOP/usr/local/etc/slurm.conf", "", real + "/sbin/slurmd", conf},
		"another file by -f, apart":     {"slurmd -vDf TOP/usr/local/etc/slurm.conf", "", real + "/sbin/slurmd", conf},
		"another file by SLURM_CONF":    {"slurmd --systemd", "A=b SLURM_CONF=TOP/usr/local/etc/slurm.conf", real + "/sbin/slurmd", conf},
		"-f goes before SLURM_CONF":     {"slurmd -f TOP/opt/slurm/etc/slurm.conf", "SLURM_CONF=TOP/usr/local/etc/slurm.conf", real + "/sbin/slurmd", own},
		"configless":                    {"slurmd --conf-server=c1 -f TOP/usr/local/etc/slurm.conf", "", real + "/sbin/slurmd", own},
		"a file that is not there":      {"slurmd -f /gone/slurm.conf", "", real + "/sbin/slurmd", own},
		"a file of another name":        {"slurmd -f TOP/usr/local/etc/gpu.conf", "", real + "/sbin/slurmd", "WARN  slurm: slurmd (process 77) reads /usr/local/etc/gpu.conf, but gojail reads /opt/slurm/etc/slurm.conf; move /usr/local/etc/gpu.conf to a directory of its own with the name slurm.conf, "},
		"another Slurm":                 {"slurmd", "", other + "/sbin/slurmd", prefix},
		"another Slurm with both files": {"slurmd -f TOP/usr/local/etc/slurm.conf", "", other + "/sbin/slurmd", conf},
		"an option of a node's name":    {"slurmd -Nf x", "", real + "/sbin/slurmd", own},
		"a program somewhere else":      {"slurmd", "", other + "/libexec/slurmd", own},
	} {
		n := &checkedNode{dir: t.TempDir()}
		n.procIn = n.dir + "/proc"
		var slurmds []int
		if test.exe != "" {
			slurmds = []int{77}
			require.NoError(t, os.MkdirAll(n.procIn+"/77", 0o755))
			nul := strings.NewReplacer(" ", "\x00", "TOP", top)
			n.writeFile(t, "proc/77/cmdline", nul.Replace(test.cmdline)+"\x00", 0o644)
			n.writeFile(t, "proc/77/environ", nul.Replace(test.environ), 0o644)
			require.NoError(t, os.Symlink(top+test.exe, n.procIn+"/77/exe"))
		}
		var found []string
		c := &checker{node: n.Node, report: func(f Finding) { found = append(found, strings.ReplaceAll(f.String(), top, "")) },
			config: &config.Config{Path: "/etc/gojail/gojail.toml", Slurm: config.Slurm{Conf: top + first + "/etc", Host: []string{top + first}}}}
		c.checkWhichSlurm(node.SlurmConf{Dir: c.config.Slurm.Conf, Plugins: []string{top + first + "/lib/slurm"}}, slurmds)
		if assert.Len(t, found, 1, name) {
			assert.True(t, strings.HasPrefix(found[0], test.want), "%s: %s", name, found[0])
		}
	}
	// /usr/bin has links to the commands of one of both, as sites make them for PATH.
	require.NoError(t, os.MkdirAll(top+"/usr/bin", 0o755))
	for _, of := range []string{first, other} {
		link := top + "/usr/bin/srun"
		os.Remove(link)
		require.NoError(t, os.Symlink(top+of+"/bin/srun", link))
		for slurmd, same := range map[string]bool{real: of == first, other: of == other} {
			n := &checkedNode{dir: t.TempDir()}
			n.procIn = n.dir + "/proc"
			require.NoError(t, os.MkdirAll(n.procIn+"/77", 0o755))
			require.NoError(t, os.Symlink(top+slurmd+"/sbin/slurmd", n.procIn+"/77/exe"))
			c := &checker{node: n.Node, report: func(Finding) {}, config: &config.Config{}}
			assert.Equal(t, same, c.checkSlurmdsPrefix(77, top+"/usr/bin"), "%s beside links to %s", slurmd, of)
		}
	}
	c := &checker{}
	for dir, want := range map[string]string{"/etc/slurm": "the default", "/etc/cluster2": "conf in [slurm]", "/run/slurm/conf": "sent by slurmctld", "/var/spool/slurmd/conf-cache": "sent by slurmctld"} {
		assert.Equal(t, want, c.describeConf(dir), dir)
	}
}
