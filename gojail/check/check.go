// SPDX-License-Identifier: Apache-2.0

// Package check is `gojail check`: what would make a launch on this node fail, one file a subject.
package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/site"
	"github.com/gojail/gojail/internal/tomlfile"
)

// Level is how much a finding matters.
type Level string

// A launch fails where something is FAIL; WARN costs time or surprises somebody.
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
	Remedy  string // what to do; empty where there is nothing to do

	// Content is whether users can bring it about: it is about a tree that they may
	// change, or about room that their files may take.
	Content bool
}

func (f Finding) String() string {
	text := fmt.Sprintf("%-4s  %s: %s", f.Level, f.Subject, f.Found)
	if f.Remedy != "" {
		text += "; " + f.Remedy
	}
	return text
}

// forAdministrator returns the finding for a person who is the administrator: nobody else is to be
// asked, and a remedy that the error names already is not said again.
func (f Finding) forAdministrator() Finding {
	f.Found = ForAdministrator(f.Found)
	if strings.Contains(f.Found, f.Remedy) {
		f.Remedy = ""
	}
	return f
}

// forRoot turns what users are told to ask for into what root is to do.
var forRoot = strings.NewReplacer(
	", or ask your administrator to ", ", or ", ", or ask your administrator for ", ", or use ",
	"; ask your administrator to ", "; ", "; ask your administrator for ", "; write ", ": ask your administrator to ", ": ",
	"ask your administrator to ", "", "ask your administrator for ", "write ", ", or ask your administrator", "",
	"; ask your administrator", "", ": ask your administrator", "",
)

// ForAdministrator returns a message that is worded for users as the administrator is to read it.
func ForAdministrator(text string) string { return forRoot.Replace(text) }

// Node is where gojail's parts are on this node.
type Node struct {
	Config string // gojail.toml
	State  string // state directory
	Name   string // as slurmd calls the node; %n
	LibDir string // where the plugin and its library are installed

	// Accounts is asked for the users and groups of the jails. Nil: nobody is; a name
	// service that hangs must not make a node look bad.
	Accounts *site.Accounts
	passwdIn string // passwd(5) of the node; empty: /etc/passwd
}

func (n *Node) passwd() string {
	if n.passwdIn != "" {
		return n.passwdIn
	}
	return "/etc/passwd"
}

// checker collects the findings about one node.
type checker struct {
	node   Node
	config *config.Config // nil: it is not right
	report func(Finding)
}

func (k *checker) ok(subject, format string, args ...any) {
	k.report(Finding{Level: OK, Subject: subject, Found: fmt.Sprintf(format, args...)})
}

func (k *checker) warn(subject, remedy, format string, args ...any) {
	k.report(Finding{Level: Warn, Subject: subject, Found: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (k *checker) fail(subject, remedy, format string, args ...any) {
	k.failIn(false, subject, remedy, format, args...)
}

// failIn is fail for what may be users' content.
func (k *checker) failIn(content bool, subject, remedy, format string, args ...any) {
	k.report(Finding{Level: Fail, Subject: subject, Found: fmt.Sprintf(format, args...), Remedy: remedy, Content: content})
}

// Check looks for everything that would make a launch on this node fail, and
// for what makes it slow. It reports as it goes, and changes nothing.
func Check(n Node, report func(Finding)) {
	k := &checker{node: n, report: func(f Finding) { report(f.forAdministrator()) }}
	c, err := node.Load(n.Config, n.Name)
	if err == nil {
		k.config = c
	}
	able := k.checkKernel()
	k.checkParts()
	k.checkState()
	if err != nil {
		for _, line := range tomlfile.List(err) {
			k.fail("configuration", "no job step starts until this is right", "%s", line)
		}
		return
	}
	k.checkConfiguration()
	k.checkScratch()
	k.checkSlurm()
	for _, name := range c.JailNames() {
		if !able {
			break // each would only say again what the kernel lacks
		}
		k.checkJailInTime(c.Jails[name])
	}
}

func (k *checker) checkConfiguration() {
	c := k.config
	k.ok("configuration", "%s: jails: %s; default: %s", c.Path, strings.Join(c.JailNames(), ", "), c.Default)
	if k.node.Accounts == nil {
		return
	}
	for _, unknown := range site.Unknown(c, *k.node.Accounts) {
		k.warn("configuration", "it matches nobody; correct the name, or see to the directory service (getent)",
			"this node knows no %s", unknown)
	}
}

// storagePatience is how long a jail's storage may take to answer.
const storagePatience = 5 * time.Second

// checkJailInTime checks a jail in a goroutine of its own: a system call on storage
// that hangs never comes back, and must not keep the other jails from being checked.
func (k *checker) checkJailInTime(j *config.Jail) {
	findings := make(chan Finding, 256)
	go func() {
		defer close(findings)
		(&checker{node: k.node, config: k.config, report: func(f Finding) { findings <- f }}).checkJail(j)
	}()
	patience := time.After(storagePatience)
	for {
		select {
		case f, more := <-findings:
			if !more {
				return
			}
			k.report(f)
		case <-patience:
			k.fail("jail "+j.Name, "see to the storage that it is on", "%s: the storage has not answered for %v", j.Root, storagePatience)
			return
		}
	}
}
