// SPDX-License-Identifier: Apache-2.0

package check

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/slurmconf"
)

// checkConstraints warns if Slurm allocates GPUs and does not keep a step from the GPUs of others. The /dev of a jail
// has the GPUs of its job alone: so gojail keeps jobs in jails apart. Only Slurm can keep the steps of a job apart, and
// tasks outside of jails (ConstrainDevices, cgroup.conf(5)).
func (c *checker) checkConstraints(conf node.SlurmConf) {
	if len(c.hardware.GPUs) == 0 {
		return
	}
	file := filepath.Join(conf.Dir, "cgroup.conf")
	var remedies []string
	if !isOn(slurmconf.ReadKeys(file)["constraindevices"]) {
		remedies = append(remedies, "write ConstrainDevices=yes to "+file)
	}
	if plugins := conf.Values["taskplugin"]; !hasWord(plugins, "task/cgroup") {
		value := "task/cgroup,task/affinity"
		if plugins != "" && plugins != "task/none" {
			value = "task/cgroup," + plugins
		}
		remedies = append(remedies, "write TaskPlugin="+value+" to "+filepath.Join(conf.Dir, "slurm.conf"))
	}
	if len(remedies) == 0 {
		c.ok("gpus", "Slurm keeps each step to its GPUs (ConstrainDevices)")
		return
	}
	outside := ""
	if c.config.AllowNone {
		outside = ", and a step with --jail=none those of all jobs"
	}
	c.warn("gpus", strings.Join(remedies, ", and ")+", and restart slurmd",
		"Slurm does not keep steps to their GPUs: a step in a jail can open all GPUs of its job%s; between jobs in "+
			"jails, gojail alone keeps them apart", outside)
}

// isOn reports whether a value turns a key of Slurm's on (s_p_get_boolean in parse_config.c).
func isOn(value string) bool {
	return slices.Contains([]string{"yes", "up", "true", "1"}, strings.ToLower(value))
}

// hasWord reports whether a list with commas has a word, in any case of letters.
func hasWord(list, word string) bool {
	return slices.ContainsFunc(strings.Split(list, ","),
		func(one string) bool { return strings.EqualFold(strings.TrimSpace(one), word) })
}
