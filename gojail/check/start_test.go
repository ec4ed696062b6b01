// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/node"
)

func TestCountGres(t *testing.T) {
	for text, want := range map[string]map[string]int{
		"":                           {},
		"gpu:8":                      {"gpu": 8},
		"gpu":                        {"gpu": 1},
		"gpu:h100":                   {"gpu": 1},
		"gpu:h100:4,gpu:a100:2,nic":  {"gpu": 6, "nic": 1},
		"gpu:h100:4(S:0-1),nic:ib:2": {"gpu": 4, "nic": 2},
		"bandwidth:lustre:4G":        {},
		"bandwidth:no_consume:4":     {},
	} {
		assert.Equal(t, want, countGres(text), text)
	}
}

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
