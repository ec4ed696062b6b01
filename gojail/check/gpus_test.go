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

func TestCheckReportsSharedGPUs(t *testing.T) {
	report := func(paths ...string) (found string) {
		facts := &node.HostFacts{}
		for _, path := range paths {
			facts.Devices = append(facts.Devices, node.Device{Path: path})
		}
		(&checker{report: func(f Finding) { found += f.Found }}).reportSharedGPUs(&config.Jail{Name: "ml"}, facts)
		return found
	}
	assert.Equal(t, "each job has /dev/nvidia0, /dev/nvidia12, as Slurm gives them to none", report("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia12", "/dev/nvidia-caps"))
	assert.Empty(t, report("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/fuse"))
}

// TestCheckOfConstraints: without ConstrainDevices, or the plugin that obeys it, gojail alone keeps GPUs apart.
func TestCheckOfConstraints(t *testing.T) {
	const both = "; write ConstrainDevices=yes to DIR/cgroup.conf, and write TaskPlugin=task/cgroup,task/affinity to DIR/slurm.conf, and restart slurmd"
	const alone = "WARN  gpus: Slurm does not keep steps to their GPUs: a step in a jail can open all GPUs of its job; between jobs in jails, gojail alone keeps them apart"
	const good = "OK    gpus: Slurm keeps each step to its GPUs (ConstrainDevices)"
	for _, test := range []struct{ cgroup, plugins, want string }{
		{"", "", alone + both}, {"ConstrainDevices=no", "task/none", alone + both}, {"#ConstrainDevices=yes", "", alone + both},
		{"ConstrainDevices=yes", "task/affinity", alone + "; write TaskPlugin=task/cgroup,task/affinity to DIR/slurm.conf, and restart slurmd"},
		{"constraindevices = Yes # GPUs", "task/affinity,task/cgroup", good}, {"ConstrainDevices=true", "task/cgroup", good},
		{"ConstrainDevices=yes\nConstrainDevices=no", "task/cgroup", alone + "; write ConstrainDevices=yes to DIR/cgroup.conf, and restart slurmd"},
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.conf"), []byte(test.cgroup+"\n"), 0o644))
		found := ""
		c := &checker{config: &config.Config{}, hardware: &node.Hardware{GPUs: [][]string{{"/dev/nvidia0"}}}, report: func(f Finding) { found += f.String() }}
		c.checkConstraints(node.SlurmConf{Dir: dir, Values: map[string]string{"taskplugin": test.plugins}})
		assert.Equal(t, strings.ReplaceAll(test.want, "DIR", dir), found, test)
	}
	(&checker{hardware: &node.Hardware{}, report: func(f Finding) { t.Error(f) }}).checkConstraints(node.SlurmConf{})
}

// TestCheckOfBegin: which PrologFlags let a session begin before the first step.
func TestCheckOfBegin(t *testing.T) {
	for flags, want := range map[string]bool{"": true, "Serial": true, "Alloc": false, "serial, Contain": false, "X11": false, "NoHold": false} {
		found := ""
		(&checker{report: func(f Finding) { found = f.String() }}).checkBegin(node.SlurmConf{Values: map[string]string{"prologflags": flags}})
		assert.Equal(t, want, found != "", "%s: %s", flags, found)
	}
}
