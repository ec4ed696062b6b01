// SPDX-License-Identifier: Apache-2.0

package check

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
)

// checkLaunch warns about settings by which srun looks for programs outside the jail (_opt_args in its opt.c), or
// copies them where jails do not show them (_file_bcast).
func (c *checker) checkLaunch(conf node.SlurmConf) {
	if strings.Contains(conf.Values["launchparameters"], "test_exec") {
		c.warn("launch", "remove it from LaunchParameters in slurm.conf",
			"LaunchParameters=test_exec: srun refuses a program that only a jail has (\"Can not execute\")")
	}
	destination := findDestination(conf)
	if destination == "" {
		return
	}
	var lacking []string
	for name, jail := range c.config.Jails {
		if !showsDirectory(jail, destination) {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) > 0 {
		slices.Sort(lacking)
		c.warn("launch",
			"name a directory in BcastParameters of slurm.conf that jails share with the node, or leave DestDir out",
			"BcastParameters has DestDir=%s, which is not the node's in jail %s: steps there with srun --bcast are "+
				"refused", destination, strings.Join(lacking, ", "))
	}
}

// findDestination returns the directory into which srun --bcast copies, if slurm.conf names one. Its key had another
// name up to 20.11.
func findDestination(conf node.SlurmConf) string {
	for _, key := range []string{"bcastparameters", "sbcastparameters"} {
		for option := range strings.SplitSeq(conf.Values[key], ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(option), "=")
			if strings.EqualFold(name, "DestDir") && filepath.IsAbs(value) {
				return filepath.Clean(value)
			}
		}
	}
	return ""
}

// showsDirectory reports whether a jail has the node's directory at its path.
func showsDirectory(j *config.Jail, path string) bool {
	return isData(j, path) || slices.ContainsFunc(j.Mounts, func(m config.Mount) bool {
		return m.Type == "bind" && m.Source == m.Destination && config.Under(path, m.Destination)
	})
}
