// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

const (
	pamDepth    = 16 // of files that include each other
	userManager = "user@.service"
	adoption    = "pam_slurm_adopt.so"
)

var (
	pamDirs = []string{"/etc/pam.d", "/usr/lib/pam.d", "/usr/etc/pam.d"} // the first one that has a file counts
	// loginServices are those of PAM, beside sshd's, with which a user's session begins on a node.
	loginServices = []string{"su", "su-l", "login"}
)

// pamRule is a line of a service's stack (pam.conf(5)).
type pamRule struct {
	kind, control, module, args string // "session", "required", "pam_env.so", "user_readenv=1"
	path                        string // as it is written: "pam_env.so"
	file                        string

	// of are the lines of kind substack that led to it: what ends a stack ends the innermost of these only.
	of []string
}

// readPAM returns the rules of a service, with those of the files that it includes.
func (c *checker) readPAM(service string) []pamRule { return c.readPAMFile(service, "", nil, pamDepth) }

// readPAMFile returns the rules of a file in pam.d(5), those of one kind unless kind is empty. A file that does not
// exist has none.
func (c *checker) readPAMFile(name, kind string, of []string, depth int) (rules []pamRule) {
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(pamDirs[0], name)
		for _, dir := range pamDirs {
			if rootpath.Exists(c.node.path(dir, name)) {
				path = filepath.Join(dir, name)
				break
			}
		}
	}
	if depth == 0 {
		return nil
	}
	for i, line := range joinContinued(node.ConfLines(c.node.path(path))) {
		rule := parsePAM(line)
		switch {
		case rule.kind == "@include": // Debian's: all kinds of rules
			rules = append(rules, c.readPAMFile(rule.control, kind, of, depth-1)...)
		case kind != "" && rule.kind != kind:
		case rule.control == "include":
			rules = append(rules, c.readPAMFile(rule.path, rule.kind, of, depth-1)...)
		case rule.control == "substack":
			rules = append(rules, c.readPAMFile(rule.path, rule.kind,
				append(slices.Clone(of), fmt.Sprint(path, " ", i)), depth-1)...)
		default:
			rule.file, rule.of = path, of
			rules = append(rules, rule)
		}
	}
	return rules
}

// joinContinued joins lines that end with a backslash with the next.
func joinContinued(lines []string) (joined []string) {
	before := ""
	for _, line := range lines {
		start, continued := strings.CutSuffix(line, `\`)
		if before += start; continued {
			before += " "
			continue
		}
		joined, before = append(joined, before), ""
	}
	if before != "" {
		joined = append(joined, before)
	}
	return joined
}

// parsePAM splits a line. A control in brackets may have spaces; "-" before the kind only keeps a missing module out of
// the log. Kinds and controls have no case.
func parsePAM(line string) (rule pamRule) {
	kind, rest := cutWord(line)
	rule.kind = strings.ToLower(strings.TrimPrefix(kind, "-"))
	if strings.HasPrefix(rest, "[") {
		rule.control, rest, _ = strings.Cut(rest, "]")
	} else {
		rule.control, rest = cutWord(rest)
	}
	if rule.kind != "@include" {
		rule.control = strings.ToLower(rule.control)
	}
	rule.path, rule.args = cutWord(rest)
	rule.module = filepath.Base(rule.path)
	return rule
}

// cutWord returns the first word of a text, and what follows.
func cutWord(text string) (word, rest string) {
	text = strings.TrimSpace(text)
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}

// checkUserManager reports logins that start the user's systemd on the node: it executes units from the home directory,
// which the user can write in the jail. pam_systemd does nothing where systemd is not process 1 (sd_booted(3)).
func (c *checker) checkUserManager(services []string) {
	if !rootpath.Exists(c.node.path("/run/systemd/system")) || c.isMasked(userManager) {
		return
	}
	var starts, files []string
	for _, service := range services {
		for _, rule := range c.readPAM(service) {
			if rule.kind != "session" || rule.module != "pam_systemd.so" {
				continue
			}
			if !slices.Contains(starts, service) {
				starts = append(starts, service)
			}
			if !slices.Contains(files, rule.file) {
				files = append(files, rule.file)
			}
		}
	}
	if len(starts) > 0 {
		c.fail("sessions", "run: systemctl mask "+userManager+" && systemctl stop 'user@*.service'",
			"pam_systemd.so (%s) starts systemd for the user at a login by %s, on the node, where it executes the "+
				"user's units in ~/.config/systemd/user, outside the jail",
			strings.Join(files, ", "), strings.Join(starts, ", "))
	}
}

// checkBegin warns if a session cannot begin before the first step of its job on a node: slurmd runs gojail's Prolog
// only then, without PrologFlags=Alloc and what implies it (slurm.conf(5)).
func (c *checker) checkBegin(conf node.SlurmConf) {
	flags := conf.Values["prologflags"]
	for _, flag := range []string{"alloc", "contain", "x11", "nohold", "deferbatch", "forcerequeueonfail"} {
		if hasWord(flags, flag) {
			return
		}
	}
	c.warn("sessions", "write PrologFlags=Alloc to slurm.conf, and restart slurmctld and slurmd",
		"without PrologFlags=Alloc ssh to a node is refused until a step of the job has begun there")
}

// isMasked reports whether systemd refuses to start a unit: its first file is a link to /dev/null, or empty
// (systemd.unit(5)).
func (c *checker) isMasked(unit string) bool {
	for _, dir := range []string{"/etc/systemd/system", "/run/systemd/system"} {
		path := c.node.path(dir, unit)
		if _, err := os.Lstat(path); err == nil {
			info, err := os.Stat(path)
			return err == nil && !info.IsDir() && info.Size() == 0
		}
	}
	return false
}
