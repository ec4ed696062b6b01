// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// checkWhichSlurm says which Slurm the check looks at, and how it was found: a host may have several. It warns where
// slurmd is another one.
func (c *checker) checkWhichSlurm(conf node.SlurmConf, slurmds []int) {
	if c.watch {
		return
	}
	_, commands := node.FindCommands(c.config)
	for _, pid := range slurmds {
		if !c.checkSlurmdsFile(pid) || !c.checkSlurmdsPrefix(pid, commands) {
			return
		}
	}
	text := filepath.Join(conf.Dir, "slurm.conf") + " (" + c.describeConf(conf.Dir) + ")"
	if commands != "" {
		text += ", commands of " + commands + " (" + c.describeCommands(commands) + ")"
	}
	if path, release := findNodesRelease(slices.Concat(conf.Plugins, node.ReadSlurm(c.config).Dirs)); path != "" {
		from := "built in"
		if slices.Contains(conf.Plugins, filepath.Dir(path)) {
			from = "PluginDir"
		}
		text += fmt.Sprintf(", plugins of %s (%s), release %s", filepath.Dir(path), from, release)
	}
	c.ok("slurm", "%s", text)
}

// describeConf returns how the directory of slurm.conf was found.
func (c *checker) describeConf(dir string) string {
	switch {
	case dir == node.RunConf || filepath.Base(dir) == contract.CacheLink:
		return "sent by slurmctld"
	case dir == config.StandardConf:
		return "the default"
	}
	return "conf in [slurm]"
}

// describeCommands returns how the directory of Slurm's commands was found.
func (c *checker) describeCommands(dir string) string {
	if slices.Contains(c.config.Slurm.Host, filepath.Dir(dir)) {
		return "host in [slurm]"
	}
	return "a usual place"
}

// checkSlurmdsFile warns of a slurmd that was started with another slurm.conf, by -f or SLURM_CONF (slurmd(8)).
func (c *checker) checkSlurmdsFile(pid int) bool {
	path := c.findSlurmdsFile(pid)
	own := filepath.Join(c.config.Slurm.Conf, "slurm.conf")
	used, err := os.Stat(path)
	if here, failed := os.Stat(own); path == "" || err != nil || failed == nil && os.SameFile(used, here) {
		return true
	}
	c.warn("slurm", c.describeConfEdit(path), "slurmd (process %d) reads %s, but gojail reads %s", pid, path, own)
	return false
}

// describeConfEdit returns what to do so that gojail reads a file that slurmd reads.
func (c *checker) describeConfEdit(path string) string {
	if filepath.Base(path) != "slurm.conf" {
		return "move " + path + " to a directory of its own with the name slurm.conf, start slurmd with that, and " +
			"write conf = DIRECTORY in [slurm] of " + c.config.Path
	}
	return fmt.Sprintf("write conf = %q in [slurm] of %s", filepath.Dir(path), c.config.Path)
}

// optionFile is a word of slurmd's with the option -f, after options without a value, as getopt(3) reads them.
var optionFile = regexp.MustCompile(`^-[bcCDGhMsVvZ]*f(.*)$`)

// findSlurmdsFile returns the slurm.conf that a slurmd was told to read; "": its default, or what slurmctld sends.
func (c *checker) findSlurmdsFile(pid int) string {
	read := func(name string) []string {
		text, _ := os.ReadFile(fmt.Sprintf("%s/%d/%s", c.node.proc(), pid, name))
		return strings.Split(string(text), "\x00")
	}
	words := read("cmdline")
	for i, word := range words {
		option := optionFile.FindStringSubmatch(word)
		switch {
		case i == 0:
		case strings.HasPrefix(word, "--conf-server"):
			return ""
		case option != nil && option[1] != "":
			return option[1]
		case option != nil && i+1 < len(words):
			return words[i+1]
		}
	}
	for _, variable := range read("environ") {
		if path, given := strings.CutPrefix(variable, "SLURM_CONF="); given {
			return path
		}
	}
	return ""
}

// checkSlurmdsPrefix warns of a slurmd that is installed below another prefix than the commands of this Slurm. Those
// may be links.
func (c *checker) checkSlurmdsPrefix(pid int, commands string) bool {
	path, err := os.Readlink(fmt.Sprintf("%s/%d/exe", c.node.proc(), pid))
	path = strings.TrimSuffix(path, " (deleted)") // by an upgrade
	real, failed := filepath.EvalSymlinks(filepath.Join(commands, "srun"))
	prefix := filepath.Dir(filepath.Dir(path))
	same := filepath.Dir(filepath.Dir(real)) == prefix
	if err != nil || failed != nil || filepath.Base(filepath.Dir(path)) != "sbin" || same {
		return true
	}
	c.warn("slurm", fmt.Sprintf("write host = [%q] in [slurm] of %s", prefix, c.config.Path),
		"slurmd (process %d) is %s, but jails and this check take the commands and plugins of %s", pid, path, commands)
	return false
}
