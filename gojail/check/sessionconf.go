// SPDX-License-Identifier: Apache-2.0

package check

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/trusted"
)

// checkSessionConfig reads session.conf as gojail-session does (place_find in spank/session/place.c), and compares it
// with the node that is checked and the plugin's arguments: with another state directory a session finds no sandbox.
func (c *checker) checkSessionConfig(conf node.SlurmConf) {
	path := c.node.path(contract.SessionConfig)
	host := node.HostName()
	used := map[string]string{"node": host, "state": contract.DefaultState, "config": contract.DefaultConfig}
	if !c.readSessionConfig(path, used) {
		return
	}
	if used["node"] != c.node.Name && c.node.Name == host { // was the check started for another node?
		c.warn("sessions", "write node="+host+" in "+path+" if that is the node's name in slurm.conf; otherwise run "+
			"gojail with --node="+used["node"],
			"gojail-session takes this node for %s, but this check is of %s", used["node"], host)
		return
	}
	here := map[string]string{"node": c.node.Name}
	if own := conf.GojailPlugins(); len(own) > 0 && !c.config.Login.Here {
		p := chooseLine(own)
		here["state"] = p.Argument("state", contract.DefaultState, c.node.Name)
		here["config"] = p.Argument("config", contract.DefaultConfig, c.node.Name)
	}
	report := c.fail
	if !c.config.Login.Here && !strings.Contains(used["state"]+used["config"], "%n") {
		report = c.warn // of the node's name alone: sessions find the jobs without it
	}
	for _, name := range slices.Sorted(maps.Keys(here)) {
		value := strings.ReplaceAll(used[name], "%n", c.node.Name) // another name has a line of its own
		if value == here[name] {
			continue
		}
		remedy := "write to " + path + ", in place of other lines of " + name + ": " + name + "=" + here[name]
		if name == "node" {
			report("sessions", remedy, "gojail-session takes this node for %s, but its name in Slurm is %s", value,
				here[name])
			continue
		}
		c.fail("sessions", remedy, "gojail-session uses %s=%s, but the plugin %[1]s=%[3]s: sessions do not find "+
			"users' jobs", name, value, here[name])
	}
}

// readSessionConfig reads the lines of session.conf, and reports why gojail-session would refuse them.
func (c *checker) readSessionConfig(path string, used map[string]string) bool {
	var st unix.Stat_t
	if unix.Lstat(path, &st) == nil {
		if err := trusted.Check(path, &st, unix.S_IFREG); err != nil || st.Nlink != 1 || trusted.Parents(path) != nil {
			c.fail("sessions", "run: cp "+path+" "+path+".new; chown root "+path+".new; chmod 644 "+path+".new; mv "+
				path+".new "+path,
				"%s is not a file that only root can change: every session is refused", path)
			return false
		}
	}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		c.fail("sessions", "make "+filepath.Dir(path)+" and the directories above it no symbolic links",
			"%s is %s, and gojail-session follows no symbolic link there: every session is refused", path, real)
		return false
	}
	text, _ := os.ReadFile(path)
	for line := range strings.SplitSeq(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		if used[name] == "" || value == "" || strings.TrimSpace(line) != line {
			c.fail("sessions", "correct or remove that line; known are config=FILE, state=DIR and node=NAME, without "+
				"blanks at the end", "%s: %q is no line of this file: every session is refused", path, line)
			return false
		}
		used[name] = value
	}
	return true
}
