// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

// checkPlugstack checks the lines of plugstack.conf, read as Slurm does, that name gojail's plugin.
func (c *checker) checkPlugstack(conf node.SlurmConf) {
	c.checkOtherLines(conf)
	own := conf.GojailPlugins()
	if len(own) == 0 {
		c.fail("plugstack", c.describeNewLine(conf), "no plugstack.conf of %s names %s: jobs run outside their jail",
			conf.Dir, contract.Plugin)
		return
	}
	p := chooseLine(own)
	if len(own) > 1 {
		var places, others []string
		for _, one := range own {
			places = append(places, one.At)
			if one.At != p.At {
				others = append(others, one.At)
			}
		}
		c.fail("plugstack", "keep "+p.At+", and remove "+strings.Join(others, " and "),
			"%s is named %d times (%s): every job step fails", contract.Plugin, len(own), strings.Join(places, ", "))
	}
	line := "replace " + p.At + " by: " +
		strings.Join(append([]string{"required", filepath.Join(c.node.LibDir, contract.Plugin)}, p.Arguments...), " ")
	switch {
	case !p.Required:
		c.fail("plugstack", line, "%s: %s is optional: where it cannot be loaded, jobs run outside their jail", p.At,
			p.Path)
	case !filepath.IsAbs(p.Path):
		c.fail("plugstack", line, "%s: no directory of PluginDir has %s: srun, sbatch and slurmd cannot start", p.At,
			p.Path)
	case !rootpath.Exists(p.Path):
		c.fail("plugstack", line, "%s: %s does not exist: srun, sbatch and slurmd cannot start", p.At, p.Path)
	default:
		c.ok("plugstack", "%s is required", p.Path)
		c.checkSamePlugin(&p, conf, line)
		c.checkRelease(p.Path, conf)
		c.checkFilesForUsers(node.ReadSlurmConf(c.config), p.Path) // users read this one, whatever slurmd reads
	}
	c.checkArguments(&p)
}

// chooseLine returns the line that stays if several name gojail's plugin: the first with which Slurm loads it, or the
// first.
func chooseLine(own []node.SpankPlugin) node.SpankPlugin {
	loads := func(p node.SpankPlugin) bool { return p.Required && rootpath.Exists(p.Path) }
	return own[max(0, slices.IndexFunc(own, loads))]
}

// describeNewLine returns what to do if plugstack.conf names no plugin of gojail's: the line of the package is there as
// a comment.
func (c *checker) describeNewLine(conf node.SlurmConf) string {
	plugin := filepath.Join(c.node.LibDir, contract.Plugin)
	for _, line := range conf.Ignored { // such as one with "Required"
		if strings.Contains(line.Text, contract.Plugin) {
			return "replace " + line.At + " by: " + correctLine(line.Text, plugin)
		}
	}
	for _, p := range conf.Plugstack { // such as one with a path in quotes
		if strings.Contains(p.Path, contract.Plugin) {
			return "replace " + p.At + " by: " + correctLine(strings.Join(p.Arguments, " "), plugin)
		}
	}
	for _, comment := range conf.Comments {
		if comment.Path == plugin {
			return "remove the # at the beginning of " + comment.At
		}
	}
	if conf.Dir == node.RunConf || filepath.Base(conf.Dir) == contract.CacheLink {
		return "add this line to the plugstack.conf beside slurmctld's slurm.conf, then run scontrol reconfigure: " +
			"required " + plugin
	}
	return "add this line to " + conf.Files[0] + ": required " + plugin
}

// correctLine returns a line of plugstack.conf that names the plugin, with the arguments of a faulty one.
func correctLine(faulty, plugin string) string {
	words := []string{"required", plugin}
	for _, word := range strings.Fields(faulty) {
		if isArgument(word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// isArgument reports whether the plugin takes a word as an argument (node_find in spank/common/node.c).
func isArgument(word string) bool {
	name, value, _ := strings.Cut(word, "=")
	return (name == "config" || name == "state") && filepath.IsAbs(value)
}

// checkSamePlugin checks that the plugin is the one that is installed with this program: gojail's Prolog accepts no
// other (read_plugin in spank/prolog/conf.c).
func (c *checker) checkSamePlugin(p *node.SpankPlugin, conf node.SlurmConf, remedy string) {
	used, err := os.Stat(p.Path)
	installed, missing := os.Stat(filepath.Join(c.node.LibDir, contract.Plugin))
	switch {
	case err != nil || missing != nil || os.SameFile(used, installed):
	case slices.ContainsFunc(conf.Prologs, func(path string) bool { return filepath.Base(path) == contract.Prolog }):
		c.fail("plugstack", remedy,
			"%s: %s is not the plugin in %s: gojail's Prolog fails every job, and drains this node", p.At, p.Path,
			c.node.LibDir)
	default:
		c.warn("plugstack", remedy, "%s: %s is not the plugin in %s: an upgrade does not replace it", p.At, p.Path,
			c.node.LibDir)
	}
}

// checkOtherLines checks the lines of plugstack.conf that do not name gojail's plugin.
func (c *checker) checkOtherLines(conf node.SlurmConf) {
	for _, line := range conf.Ignored {
		if strings.Contains(line.Text, contract.Plugin) {
			continue // describeNewLine replaces it
		}
		c.warn("plugstack", "write required, optional or include, and a path, or remove "+line.At,
			"%s: %q: Slurm ignores this line", line.At, line.Text)
	}
	// Without PluginDir and a command of Slurm's, nobody knows where Slurm looks for a relative name.
	dir, _ := findNodesRelease(slices.Concat(conf.Plugins, node.ReadSlurm(c.config).Dirs))
	for _, p := range conf.Plugstack {
		isKnown := filepath.IsAbs(p.Path) || dir != ""
		switch {
		case !isKnown || rootpath.Exists(p.Path) || strings.Contains(p.Path, contract.Plugin):
		case p.Required:
			c.fail("plugstack", "install it, or remove "+p.At,
				"%s: required plugin %s does not exist: srun, sbatch and slurmd cannot start", p.At, p.Path)
		default:
			c.warn("plugstack", "install it, or remove "+p.At,
				"%s: optional plugin %s does not exist: jobs run without it, and Slurm 25.11.1 and later log nothing",
				p.At, p.Path)
		}
	}
}

// checkArguments checks the plugin's arguments as the plugin does (node_find in spank/common/node.c), and
// compares them with the files of this check.
func (c *checker) checkArguments(p *node.SpankPlugin) {
	for _, word := range p.Arguments {
		name, _, _ := strings.Cut(word, "=")
		remedy := "replace " + p.At + " by: " + correctLine(strings.Join(p.Arguments, " "), p.Path)
		switch {
		case isArgument(word):
			continue
		case name != "config" && name != "state" || !strings.Contains(word, "="):
			c.fail("plugstack", remedy, "%s: unknown argument %q of %s, which takes config=FILE and state=DIR: every "+
				"job step fails", p.At, word, contract.Plugin)
		default:
			c.fail("plugstack", remedy, "%s: argument %q is not an absolute path: every job step fails", p.At, word)
		}
		return
	}
	config := p.Argument("config", contract.DefaultConfig, c.node.Name)
	if config != c.node.Config && filepath.IsAbs(config) {
		if _, err := node.Load(config, c.node.Name); err != nil {
			c.fail("plugstack", fmt.Sprintf("correct that file, or config= in %s", p.At),
				"the plugin uses config=%s, with which every job step fails: %v", config, err)
		}
	}
	for _, used := range []struct{ name, value, here string }{
		{"config", config, c.node.Config},
		{"state", p.Argument("state", contract.DefaultState, c.node.Name), c.node.State},
	} {
		if used.value != used.here {
			c.warn("plugstack", "ignore this if you check a file before you install it; otherwise run gojail with --"+
				used.name+"="+used.value+", or correct plugstack.conf",
				"the plugin uses %s=%s, but this check uses %s", used.name, used.value, used.here)
		}
	}
}
