// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
)

func TestStartFault(t *testing.T) {
	conf := node.SlurmConf{Dir: "/etc/slurm"}
	for text, want := range map[string]string{
		"Gres Name=gpu Type=(null) Count=1 Index=0":      "",
		"error: Invalid GRES data for gpu, Cores=0-99":   "",
		"error: Waiting for gres.conf file /dev/nvidia0": "gres.conf names /dev/nvidia0, which does not exist",
		"fatal: Unable to process configuration file":    "Unable to process configuration file",
	} {
		fault, _ := findStartFault([]string{text}, conf)
		assert.Equal(t, want, fault)
	}
	fault, remedy := findStartFault([]string{"error: Parse error in file a line 1: \"x\"", "fatal: error opening a"}, conf)
	assert.Equal(t, "Parse error in file a line 1: \"x\": error opening a", fault)
	assert.Equal(t, "correct that file", remedy)
	_, remedy = findStartFault([]string{"error: Waiting for gres.conf file /dev/gojail/ib0"}, conf)
	assert.Equal(t, "compare /etc/slurm/gres.conf with what this prints: gojail gres", remedy)
}

// TestWordsOfSlurmd: the forms are those of 22.05, 24.11 and 26.05, as root and as a user.
func TestWordsOfSlurmd(t *testing.T) {
	for text, want := range map[string][]string{
		"slurmd: Gres Name=nic Type=(null) Count=1\n":                                       {"Gres Name=nic Type=(null) Count=1"},
		"[2026-11-29T02:00:45.656] Gres Name=nic Count=1\n":                                 {"Gres Name=nic Count=1"},
		"Nov 29 02:00:16.46297   4532 slurmd       0x7f: Gres Name=nic Count=1\n":           {"Gres Name=nic Count=1"},
		"slurmd: error: Waiting for gres.conf file /dev/nvidia0\n":                          {"error: Waiting for gres.conf file /dev/nvidia0"},
		"slurmd: fatal: auth/slurm: Could not load key file (/etc/slurm/slurm.key)\n":       nil,
		"slurmd: error: can't stat gres.conf file /root/a: Permission denied\nfatal: x\n":   nil,
		"error: unable to open '/sys/fs/cgroup/memory/a': Permission denied\nGres Name=a\n": {"Gres Name=a"},
		"slurmd: debug: nothing\n": nil,
	} {
		said, whole := readWords(text, nil)
		assert.Equal(t, want, said, text)
		assert.Equal(t, !refused.MatchString(text) || want != nil, whole, text)
	}
	_, whole := readWords("slurmd: Gres Name=nic Count=1\n", os.ErrDeadlineExceeded)
	assert.False(t, whole, "it was ended while it looked for more")
}

func TestDevicesOfUsers(t *testing.T) {
	for text, modes := range map[string]map[os.FileMode]bool{
		"Name=gpu File=/dev/nvidia0": {0o660: false, 0o666: false},
		"AutoDetect=nvml":            {0o660: true, 0o666: false},
		"AutoDetect=off":             {0o660: false},
		"Name=gpu autodetect=RSMI":   {0o666: true},
		// a line of other nodes, and lines of this node and others
		"NodeName=n9 AutoDetect=rsmi":           {0o666: false},
		"NodeName=n9,n1, AutoDetect=rsmi":       {0o666: true},
		`NodeName = "n[1-2]" AutoDetect="rsmi"`: {0o666: true},
	} {
		for mode, want := range modes {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "gres.conf"), []byte(text+"\n"), 0o644))
			require.NoError(t, os.Mkdir(filepath.Join(dir, "dev"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "dev/nvidia0"), nil, mode))
			require.NoError(t, os.Chmod(filepath.Join(dir, "dev/nvidia0"), mode))
			c := &checker{node: Node{Name: "n1", rootIn: dir}}
			assert.Equal(t, want, c.needsDevices(node.SlurmConf{Dir: dir}), "%s, %o", text, mode)
		}
	}
}

func TestCgroupFault(t *testing.T) {
	plugins := findOwnPlugins(t)
	for name, test := range map[string]struct{ text, track, want string }{
		"nothing":        {"", "proctrack/cgroup", ""},
		"autodetect":     {"CgroupPlugin=autodetect\n", "proctrack/cgroup", ""},
		"another plugin": {"CgroupPlugin=cgroup/v3\n", "proctrack/linuxproc", "CgroupPlugin=cgroup/v3 of cgroup.conf is no plugin of Slurm"},
		"no cgroups":     {"CgroupMountpoint=/nope\n", "", "CgroupMountpoint=/nope of cgroup.conf has no cgroups"},
		"not used":       {"CgroupMountpoint=/nope\n", "proctrack/linuxproc", ""},
		"v2 elsewhere":   {"CgroupPlugin=cgroup/v2\nCgroupMountpoint=/proc\n", "proctrack/cgroup", "of cgroup.conf "},
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.conf"), []byte(test.text), 0o644))
		fault, remedy := findCgroupFault(node.SlurmConf{Dir: dir, Values: map[string]string{"proctracktype": test.track}}, plugins)
		if test.want == "" {
			assert.Empty(t, fault, name)
			continue
		}
		assert.Contains(t, fault, test.want, name)
		assert.Contains(t, remedy, " from "+filepath.Join(dir, "cgroup.conf"), name)
	}
}

// findOwnPlugins returns this machine's directory of Slurm's plugins.
func findOwnPlugins(t *testing.T) []string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/*/slurm-wlm/cgroup_v1.so")
	if len(found) == 0 {
		t.Skip("needs slurmd: make deps installs it")
	}
	return []string{filepath.Dir(found[0])}
}

func TestEntireStep(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                   false,
		"BasePath=/a":                        false,
		"BasePath=/a\nentirestepinns = true": true,
		"EntireStepInNS=no":                  false,
		"NodeName=n9 EntireStepInNS=yes\nNodeName=n[1-8] BasePath=/a": false,
		"NodeName=n9 BasePath=/a\nNodeName=n[1-8] EntireStepInNS=up":  true,
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "job_container.conf"), []byte(text+"\n"), 0o644))
		c := &checker{node: Node{Name: "n1"}, config: &config.Config{Slurm: config.Slurm{Conf: dir}}}
		assert.Equal(t, want, c.checkEntireStep(), text)
	}
}
