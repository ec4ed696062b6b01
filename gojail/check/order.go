// SPDX-License-Identifier: Apache-2.0

package check

import (
	"debug/elf"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/node"
)

// laterPlugins are plugins, by a part of their file's name, that must not come after gojail, and what they do there:
// gojail's user_init has left the job's files before theirs is called (spank/plugin/hooks.c).
var laterPlugins = []struct {
	names []string
	does  string
}{
	{[]string{"pyxis", "shifter"}, "looks up and unpacks containers on the node, not in the jail"},
	{[]string{"auks"}, "writes the user's tickets to the node's /tmp, which tasks in a jail do not see"},
	{[]string{"private-tmp", "private_tmp", "tmpdir"},
		"mounts a /tmp that tasks in a jail do not see, and --output below /tmp goes there"},
}

// mountCalls are functions of the C library by which a plugin changes mounts.
var mountCalls = []string{"mount", "unshare", "setns", "move_mount"}

// checkOrder reports plugins whose place before or after gojail's in plugstack.conf makes them, or gojail, work
// otherwise than expected.
func (c *checker) checkOrder(plugin string, conf node.SlurmConf, release slurmVersion) {
	later := false
	for _, p := range conf.Plugstack {
		switch {
		case p.Path == plugin:
			later = true
		case !later:
			c.checkEarlierPlugin(p, release)
		default:
			if does := describeLater(p.Path); does != "" {
				c.warn("plugstack", "move its line before gojail's", "%s: %s comes after gojail and %s", p.At, p.Path,
					does)
			}
		}
	}
}

// checkEarlierPlugin warns about a required plugin before gojail's. Before 25.05 a plugin that returns a positive
// number ends the hook for all later plugins, and Slurm continues (_do_call_stack in spank.c). If it does so in both
// hooks of a task, nothing of gojail's is called in the task any more. It is a warning, since most plugins never do.
func (c *checker) checkEarlierPlugin(p node.SpankPlugin, release slurmVersion) {
	if release >= 0x190500 || !p.Required {
		return
	}
	c.warn("plugstack",
		"write optional in its line, or move it below gojail's if it neither mounts nor prepares files of the job",
		"%s is required and comes before gojail: where it returns a positive number, Slurm %s does not call gojail: "+
			"if it does so in both task_init_privileged and task_init, tasks run outside their jail", p.Path, release)
}

// describeLater returns what a plugin after gojail does otherwise than its administrator expects, "" if nothing is
// known.
func describeLater(path string) string {
	name := strings.ToLower(filepath.Base(path))
	for _, kind := range laterPlugins {
		if slices.ContainsFunc(kind.names, func(part string) bool { return strings.Contains(name, part) }) {
			return kind.does
		}
	}
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	imported, _ := f.ImportedSymbols()
	if !slices.ContainsFunc(imported, func(s elf.ImportedSymbol) bool { return slices.Contains(mountCalls, s.Name) }) {
		return ""
	}
	return "changes mounts: tasks in a jail do not see them, and files of --output may lie on them"
}
