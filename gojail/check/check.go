// SPDX-License-Identifier: Apache-2.0

// Package check implements `gojail check`: it reports what would make a launch on this node fail. Each
// file checks one subject.
package check

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/site"
	"github.com/gojail/gojail/gojail/subids"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/tomlfile"
)

// Level is the severity of a finding.
type Level string

// Values of Level: a launch fails if a finding is FAIL; a WARN costs time or may be unexpected.
const (
	OK   Level = "OK"
	Warn Level = "WARN"
	Fail Level = "FAIL"
)

// Finding is one line of `gojail check`.
type Finding struct {
	Level   Level
	Subject string // "kernel", "jail debian"
	Found   string
	Remedy  string // what to do; "": nothing

	// Content reports whether users can cause the finding: it is about a tree that they may change, or
	// about space that their files may take.
	Content bool
	// Silent reports that the jail's storage does not answer, Unfinished that it answers too slowly for
	// the check, and Alert that the health check reports a WARN as well.
	Silent, Unfinished, Alert bool

	Version string // of the store, that the jail's template has; "": not known
	Behind  bool   // it is not the current one
}

func (f Finding) String() string {
	text := fmt.Sprintf("%-4s  %s: %s", f.Level, f.Subject, f.Found)
	if f.Remedy != "" {
		text += "; " + f.Remedy
	}
	return text
}

// forAdministrator returns the finding as worded for the administrator, without a remedy that the error
// names already. It is one line: a finding may quote a jail's files, which users write.
func (f Finding) forAdministrator() Finding {
	f.Found, f.Remedy = oneline.Safe(ForAdministrator(f.Found)), oneline.Safe(f.Remedy)
	if strings.Contains(f.Found, f.Remedy) {
		f.Remedy = ""
	}
	return f
}

// forRoot replaces requests to the administrator by instructions.
var forRoot = strings.NewReplacer(
	", or ask your administrator to ", ", or ", ", or ask your administrator for ", ", or use ",
	"; ask your administrator to ", "; ", "; ask your administrator for ", "; write ", ": ask your administrator to ",
	": ",
	"ask your administrator to ", "", "ask your administrator for ", "write ", ", or ask your administrator", "",
	"; ask your administrator", "", ": ask your administrator", "",
)

// ForAdministrator returns a message that is worded for users as worded for the administrator.
func ForAdministrator(text string) string { return forRoot.Replace(text) }

// Node holds the paths and names of gojail's parts on this node.
type Node struct {
	Config string // path of gojail.toml
	State  string // path of the state directory
	Name   string // the node's name in slurm.conf, and the value of %n
	LibDir string // directory of the plugin and its library

	// Accounts resolves the users and groups of the jails. Nil skips this check: a name service that
	// hangs must not make a node look faulty.
	Accounts *site.Accounts
	passwdIn string // path of the node's passwd(5); "": /etc/passwd
	procIn   string // proc(5); "": /proc
	rootIn   string // directory below which the settings of PAM and systemd are; "": /
	lastPID  string // path of the setting that checkPIDs opens; "": the kernel's

	subIDs *subids.Source // where ranges and accounts are read; nil: this node
}

// path returns the path of a file of PAM or systemd.
func (n *Node) path(elements ...string) string {
	return filepath.Join(append([]string{"/", n.rootIn}, elements...)...)
}

func (n *Node) passwd() string { return cmp.Or(n.passwdIn, "/etc/passwd") }

func (n *Node) proc() string { return cmp.Or(n.procIn, "/proc") }

// checker reports the findings about one node.
type checker struct {
	node     Node
	config   *config.Config // nil: it has errors
	hardware *node.Hardware
	report   func(Finding)
	ids      *userNamespace
	watch    bool // for Watch: without findings that only an administrator wants

	serviceUser func() serviceUser // findServiceUser, which is called once, by the first jail that needs it

	faults map[string]bool // subjects that have a finding, of the node

	wasFull, isFull bool // whether the scratch directory was, and is, full
}

func (c *checker) ok(subject, format string, args ...any) {
	c.report(Finding{Level: OK, Subject: subject, Found: fmt.Sprintf(format, args...)})
}

func (c *checker) warn(subject, remedy, format string, args ...any) {
	c.report(Finding{Level: Warn, Subject: subject, Found: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (c *checker) fail(subject, remedy, format string, args ...any) {
	c.failIn(false, subject, remedy, format, args...)
}

// failIn is fail for findings that users may have caused (Finding.Content).
func (c *checker) failIn(content bool, subject, remedy, format string, args ...any) {
	c.report(Finding{Level: Fail, Subject: subject, Found: fmt.Sprintf(format, args...), Remedy: remedy,
		Content: content})
}

// checkTimeout is the limit for the check of all jails, where their storage answers slowly.
const checkTimeout = 30 * time.Second

// Check reports everything that would make a launch on this node fail, what makes it slow, and what the
// storage of each jail can do, while it checks. It changes nothing.
func Check(n Node, report func(Finding)) {
	c := newChecker(n, report)
	if c.checkNode() {
		c.checkJails(checkTimeout, needAll)
	}
}

func needAll(*config.Jail, *probe) bool { return true }

func newChecker(n Node, report func(Finding)) *checker {
	c := &checker{node: n, ids: &userNamespace{}, faults: map[string]bool{}}
	c.report = func(f Finding) {
		if f.Level != OK {
			c.faults[f.Subject] = true
		}
		report(f.forAdministrator())
	}
	c.serviceUser = sync.OnceValue(c.findServiceUser)
	return c
}

// checkNode checks everything but the jails, and reports whether they can be checked.
func (c *checker) checkNode() bool {
	cfg, err := node.Load(c.node.Config, c.node.Name)
	if err == nil {
		c.config, c.hardware = cfg, node.ReadHardware(cfg)
	}
	able := c.checkKernel()
	c.checkCapabilities()
	c.checkParts()
	c.checkState()
	c.checkForeign()
	if err != nil {
		for _, line := range tomlfile.List(err) {
			c.fail("configuration", c.describeFirstConfig(err), "%s", line)
		}
		return false
	}
	c.checkConfiguration()
	c.checkScratch()
	c.checkPIDs()
	c.checkSlurm()
	c.checkSubIDs()
	return able // otherwise each jail would report the kernel's fault again
}

// describeFirstConfig returns what to do about a configuration that does not exist, or "".
func (c *checker) describeFirstConfig(err error) string {
	example := filepath.Join(c.node.LibDir, "../../share/doc/gojail/gojail.toml.example")
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return ""
	case rootpath.Exists(example):
		return fmt.Sprintf("run: install -D -m 644 %s %s, and write your jails there", example, c.node.Config)
	}
	return "write it, as gojail.toml.example of gojail's sources explains"
}

func (c *checker) checkConfiguration() {
	cfg := c.config
	c.ok("configuration", "%s: jails: %s; default: %s", cfg.Path, strings.Join(cfg.JailNames(), ", "), cfg.Default)
	if c.node.Accounts == nil {
		return
	}
	for _, unknown := range site.Unknown(cfg, *c.node.Accounts) {
		c.warn("configuration", "it matches no user; correct the name, or check the name service (getent)",
			"this node has no %s", unknown)
	}
}
