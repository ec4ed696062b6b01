// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"fmt"
	"path/filepath"
	"strings"
)

// plugstack checks what plugstack.conf, read as Slurm does, makes of gojail's plugin.
func (k *checker) plugstack(conf slurmConf) {
	line := "write this line into plugstack.conf: required " + filepath.Join(k.node.LibDir, pluginName)
	k.otherLines(conf)
	own := conf.own()
	if len(own) == 0 {
		k.fail("plugstack", line, "no plugstack.conf of %s names %s: jobs run outside their jail", conf.dir, pluginName)
		return
	}
	if len(own) > 1 {
		var places []string
		for _, p := range own {
			places = append(places, p.at)
		}
		k.fail("plugstack", "leave one of these lines; a file may be included by another one, as Debian's plugstack.conf includes plugstack.conf.d",
			"%s is named %d times (%s): every job step fails", pluginName, len(own), strings.Join(places, ", "))
	}
	p := own[0]
	switch {
	case !p.required:
		k.fail("plugstack", line, "%s: %s is optional: where it cannot be loaded, jobs run outside their jail", p.at, p.path)
	case !filepath.IsAbs(p.path):
		k.fail("plugstack", line, "%s: %s is in no directory of PluginDir: srun, sbatch and slurmd cannot start", p.at, p.path)
	case !exists(p.path):
		k.fail("plugstack", line, "%s: %s is not there: srun, sbatch and slurmd cannot start", p.at, p.path)
	default:
		k.ok("plugstack", "%s is required", p.path)
		k.release(p.path, conf)
	}
	k.arguments(&p)
}

// otherLines checks the lines of plugstack.conf that do not name gojail's plugin.
func (k *checker) otherLines(conf slurmConf) {
	for _, line := range conf.ignored {
		k.warn("plugstack", "write required, optional or include, and a path", "%s: Slurm ignores this line", line)
	}
	for _, p := range conf.plugstack {
		if p.required && filepath.Base(p.path) != pluginName && filepath.IsAbs(p.path) && !exists(p.path) {
			k.fail("plugstack", "install it, or take its line out", "%s: required plugin %s is not there: srun, sbatch and slurmd cannot start", p.at, p.path)
		}
	}
}

// arguments checks the plugin's arguments as the plugin does (node_find in spank/node.c), and that
// they name the files that this check was started with.
func (k *checker) arguments(p *spankPlugin) {
	for _, word := range p.arguments {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case name != "config" && name != "state" || !strings.Contains(word, "="):
			k.fail("plugstack", "the arguments are config=FILE and state=DIR", "%s: unknown argument %q of %s: every job step fails", p.at, word, pluginName)
		case !filepath.IsAbs(value):
			k.fail("plugstack", "write the full path", "%s: argument %q is not a full path: every job step fails", p.at, word)
		}
	}
	config := p.argument("config", DefaultConfig, k.node.Name)
	if config != k.node.Config && filepath.IsAbs(config) {
		if _, err := Load(config, k.node.Name); err != nil {
			k.fail("plugstack", fmt.Sprintf("correct that file, or config= in %s", p.at),
				"the plugin uses config=%s, with which every job step fails: %v", config, err)
		}
	}
	for _, used := range []struct{ name, value, here string }{
		{"config", config, k.node.Config},
		{"state", p.argument("state", DefaultState, k.node.Name), k.node.State},
	} {
		if used.value != used.here {
			k.warn("plugstack", "right for a file that is to replace it; else run gojail with --"+used.name+"="+used.value+", or correct plugstack.conf",
				"the plugin uses %s=%s, but this is a check of %s", used.name, used.value, used.here)
		}
	}
}

// PluginState returns the state directory that plugstack.conf gives to the plugin, or
// the default where it gives none or cannot be read.
func PluginState(c *Config) string {
	conf := readSlurmConf(c)
	if own := conf.own(); len(own) > 0 {
		return own[0].argument("state", DefaultState, c.Node)
	}
	return DefaultState
}

// PluginConfig returns the configuration that the plugin uses by the plugstack.conf in or named by
// the slurm.conf of a directory, and whether that names the plugin at all.
func PluginConfig(dir, name string) (path string, named bool) {
	conf := readSlurmConf(&Config{Node: name, Slurm: Slurm{Conf: dir}})
	own := conf.own()
	if len(own) == 0 {
		return "", false
	}
	return own[0].argument("config", DefaultConfig, name), true
}
