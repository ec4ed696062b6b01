// SPDX-License-Identifier: Apache-2.0

package node

import (
	"path/filepath"
	"slices"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
)

// PluginState returns the state directory that plugstack.conf sets for the plugin, or the default if plugstack.conf
// sets none or cannot be read.
func PluginState(c *config.Config) string {
	conf := ReadSlurmConf(c)
	if own := conf.GojailPlugins(); len(own) > 0 {
		return own[0].Argument("state", contract.DefaultState, c.Node)
	}
	return contract.DefaultState
}

// PluginConfig returns the configuration file that the plugin uses, according to the slurm.conf in a directory and its
// plugstack.conf. named reports whether the node should have the plugin: plugstack.conf or a Prolog of slurm.conf names
// gojail.
func PluginConfig(dir, name string) (path string, named bool) {
	conf := ReadSlurmConf(&config.Config{Node: name, Slurm: config.Slurm{Conf: dir}})
	own := conf.GojailPlugins()
	if len(own) == 0 {
		named = slices.ContainsFunc(conf.Prologs,
			func(path string) bool { return filepath.Base(path) == contract.Prolog })
		return contract.DefaultConfig, named
	}
	return own[0].Argument("config", contract.DefaultConfig, name), true
}
