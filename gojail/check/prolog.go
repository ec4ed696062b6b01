// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// checkProlog checks that slurm.conf names gojail's Prolog. A node without the plugin runs jobs outside
// their jail, and reports nothing; slurmd fails a job and drains the node if a Prolog fails or is
// missing (slurmd_script in prep_script_slurmd.c).
func (c *checker) checkProlog(conf node.SlurmConf) {
	own := filepath.Join(c.node.LibDir, contract.Prolog)
	remedy := "add Prolog=" + own + " to slurm.conf, once all nodes have it; up to 22.05, where there is a Prolog " +
		"already, run it at the start of that"
	patterns := ""
	if !c.checkScripts(conf, own) {
		return
	}
	for _, value := range conf.Prologs {
		path := conf.Beside(value)
		if filepath.Base(path) == contract.Prolog {
			c.ok("prolog", "%s fails each job on a node that does not load the plugin", path)
			return
		}
		files, _ := filepath.Glob(path)
		for _, file := range files {
			runs, ignores := runsProlog(file)
			switch {
			case !runs:
			case ignores:
				c.warn("prolog", "write there: "+own+" || exit 1", "%s runs %s and ignores its exit status: on a "+
					"node that does not load the plugin, jobs run outside their jail", file, contract.Prolog)
				return
			case strings.ContainsAny(value, "*?["):
				patterns = value
			default:
				c.ok("prolog", "%s runs %s", path, contract.Prolog)
				return
			}
		}
	}
	if patterns != "" {
		c.warn("prolog", remedy, "Prolog=%s matches gojail's Prolog on this node; on a node without that file it "+
			"does not, and jobs run outside their jail", patterns)
		return
	}
	c.warn("prolog", remedy, "slurm.conf does not name gojail's Prolog: on a node that does not load the plugin, "+
		"jobs run outside their jail")
}

var (
	// prologCall is gojail's Prolog as a word of a command.
	prologCall = regexp.MustCompile(`/` + regexp.QuoteMeta(contract.Prolog) + `(["'\s;&|)]|$)`)
	// bareCall is a command of a shell that is nothing else, and what makes its exit status 0 for sure.
	bareCall = regexp.MustCompile(`^["']?[^\s"']*/` + regexp.QuoteMeta(contract.Prolog) +
		`["']?\s*(\|\|\s*true|\|\|\s*:|&|;)?$`)
	// shellLine is the first line of a script of a shell, with its options.
	shellLine = regexp.MustCompile(`^#!.*\b(?:ba|da|k|z)?sh(?:\s+(-\S*))?\s*$`)
	// errorExit has a shell end if a command fails.
	errorExit = regexp.MustCompile(`^set\s+(-[a-z]*e|-o\s+errexit)`)
	// blockEnd ends what the commands before it are in.
	blockEnd = regexp.MustCompile(`^(fi|done|esac|\}|;;)$`)
)

// runsProlog reports whether a Prolog is gojail's, or a script that runs it: one that only has it in a comment does
// not. ignores is true where that is a shell's, and goes on whatever the exit status is.
func runsProlog(path string) (runs, ignores bool) {
	if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Base(real) == contract.Prolog {
		return true, false
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return false, false
	}
	text, _ := os.ReadFile(path)
	first, rest, _ := strings.Cut(string(text), "\n")
	if !strings.HasPrefix(first, "#!") {
		return false, false
	}
	commands := splitCommands(rest)
	if !slices.ContainsFunc(commands, prologCall.MatchString) {
		return false, false
	}
	shell := shellLine.FindStringSubmatch(first)
	return true, shell != nil && ignoresProlog(commands, strings.Contains(shell[1], "e"))
}

// splitCommands returns the lines of a script that are neither empty nor a comment.
func splitCommands(script string) []string {
	var commands []string
	for line := range strings.Lines(script) {
		line, _, _ = strings.Cut(" "+strings.TrimSpace(line), " #")
		if line = strings.TrimSpace(line); line != "" {
			commands = append(commands, line)
		}
	}
	return commands
}

// ignoresProlog reports whether a shell goes on for sure after gojail's Prolog has failed. exits is whether it ends
// if a command fails. Whatever is more than a line of its own counts as a test of the exit status.
func ignoresProlog(commands []string, exits bool) bool {
	for i, command := range commands {
		exits = exits || errorExit.MatchString(command)
		call := bareCall.FindStringSubmatch(command)
		switch {
		case call == nil:
		case call[1] != "" && call[1] != ";":
			return true
		case !exits:
			after := slices.DeleteFunc(slices.Clone(commands[i+1:]), blockEnd.MatchString)
			// The exit status of the last command is the script's.
			return len(after) > 0 && after[0] != "exit" && !strings.Contains(strings.Join(after, "\n"), "$?")
		}
	}
	return false
}
