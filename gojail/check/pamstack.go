// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

// moduleDirs are where distributions have PAM's modules.
var moduleDirs = []string{"/lib/*/security", "/usr/lib/*/security", "/lib/security", "/usr/lib/security",
	"/lib64/security", "/usr/lib64/security"}

func isAdoption(r pamRule) bool { return r.module == adoption }

// checkStack reports what in sshd's PAM stack refuses sessions, or keeps pam_slurm_adopt from putting them into their
// job's cgroup. It reports whether nobody without a job gets past the stack.
func (c *checker) checkStack(conf node.SlurmConf, service string, pam []pamRule, people []person) (adopts bool) {
	if !c.checkModules(pam) {
		return true // no session begins at all
	}
	c.checkShells(pam, people)
	if c.config.Login.Here {
		return false
	}
	adopts = c.checkAdoption(conf, filepath.Join(pamDirs[0], service), pam)
	if !slices.ContainsFunc(pam, isAdoption) { // otherwise checkAdoption asks for Contain, which implies it
		c.checkBegin(conf)
	}
	return adopts
}

// findAction returns what PAM does where a module returns a value (pam.conf(5)): a word, or the number of rules to
// skip.
func (r *pamRule) findAction(value string) string {
	succeeds := value == "success"
	switch {
	case succeeds && slices.Contains([]string{"required", "requisite", "optional"}, r.control):
		return "ok"
	case succeeds && r.control == "sufficient":
		return "done"
	case r.control == "required" || r.control == "requisite":
		return "die"
	case r.control == "sufficient" || r.control == "optional":
		return "ignore"
	}
	words, found := strings.CutPrefix(r.control, "[")
	if !found {
		return "die" // libpam fails at a word that it does not know
	}
	action := "bad"
	for _, word := range strings.Fields(words) {
		name, what, _ := strings.Cut(word, "=")
		if name == value {
			return what
		}
		if name == "default" {
			action = what
		}
	}
	return action
}

func (r *pamRule) isFatal(value string) bool {
	return slices.Contains([]string{"die", "bad"}, r.findAction(value))
}

// hasModule reports whether the file of a rule's module exists. Where no directory has pam_permit.so, this node keeps
// its modules in a place of its own.
func (c *checker) hasModule(path string) bool {
	if filepath.IsAbs(path) {
		return strings.Contains(path, "$ISA") || rootpath.Exists(c.node.path(path))
	}
	has := func(name string) bool {
		return slices.ContainsFunc(moduleDirs, func(dir string) bool {
			files, _ := filepath.Glob(c.node.path(dir, name))
			return len(files) > 0
		})
	}
	return has(path) || !has("pam_permit.so")
}

// checkModules reports modules of sshd's stack that do not exist, where PAM refuses every session for that. It reports
// whether there is none.
func (c *checker) checkModules(pam []pamRule) bool {
	for _, r := range pam {
		if r.kind != "account" && r.kind != "session" || c.hasModule(r.path) || !r.isFatal("module_unknown") {
			continue
		}
		remedy := "remove the line of " + r.path + " from " + r.file
		switch {
		case r.path != r.module && c.hasModule(r.module):
			remedy = "write " + r.module + " in place of " + r.path + " in " + r.file
		case r.module == adoption:
			remedy = "install it (Debian: libpam-slurm-adopt), or " + remedy
		}
		c.fail("sessions", remedy, "%s names the module %s, which does not exist: PAM refuses every session by ssh",
			r.file, r.path)
		return false
	}
	return true
}

// checkShells reports pam_shells, which refuses users whose login shell is not in /etc/shells. A name service may have
// such users, too, whom it does not ask for.
func (c *checker) checkShells(pam []pamRule, people []person) {
	report := c.warn
	if slices.ContainsFunc(people, func(p person) bool { return filepath.Base(p.shell) == contract.Session }) {
		report = c.fail
	}
	shells := node.ConfLines(c.node.path("/etc/shells"))
	for _, r := range pam {
		if r.module == "pam_shells.so" && r.kind == "account" && r.isFatal("auth_err") &&
			!slices.Contains(shells, filepath.Join(c.node.LibDir, contract.Session)) {
			report("sessions", "remove the line of pam_shells.so from "+r.file,
				"pam_shells.so refuses users whose login shell is gojail-session")
			return
		}
	}
}

// conditional are modules that succeed for some users.
var conditional = []string{"pam_access.so", "pam_succeed_if.so", "pam_listfile.so", "pam_time.so", "pam_group.so",
	"pam_rootok.so", "pam_wheel.so", "pam_exec.so", "pam_usertype.so"}

// course is one through the account rules: the rule that skips pam_slurm_adopt, or ends the stack before; and the rule
// that refuses the user. Either is nil if there is none.
type course struct{ skips, refuses *pamRule }

// isBetter reports whether a course is more that of a user of the node's than another: who is not refused comes before
// who is, and who reaches pam_slurm_adopt before who does not.
func (w course) isBetter(than course) bool {
	if (w.refuses == nil) != (than.refuses == nil) {
		return w.refuses == nil
	}
	return w.skips == nil && than.skips != nil
}

// walkAccount returns the best course through the account rules for a user for whom every module succeeds but those of
// conditional, which may do either: somebody gets in by it. It begins with the last rule, so that it takes each once.
func walkAccount(pam []pamRule) (skips, refuses *pamRule) {
	rules := slices.DeleteFunc(slices.Clone(pam), func(r pamRule) bool { return r.kind != "account" })
	at := slices.IndexFunc(rules, isAdoption)
	from := make([]course, len(rules)+1)
	for i := len(rules) - 1; i >= 0; i-- {
		r := &rules[i]
		actions := []string{r.findAction("success")}
		other := r.findAction("default")
		if slices.Contains(conditional, r.module) && !slices.Contains([]string{"bad", "die"}, other) {
			actions = append(actions, other)
		}
		for n, action := range actions {
			next := findNext(rules, i, action)
			w := from[min(next, len(rules))]
			if i < at && at < next {
				w.skips = r
			}
			if r.module == "pam_deny.so" && r.isFatal("auth_err") || action == "die" || action == "bad" {
				w = course{refuses: r}
			}
			if n == 0 || w.isBetter(from[i]) {
				from[i] = w
			}
		}
	}
	return from[0].skips, from[0].refuses
}

// findNext returns the index of the rule that follows one whose module has led to an action.
func findNext(rules []pamRule, i int, action string) int {
	r, next := &rules[i], i+1
	if skip, err := strconv.Atoi(action); err == nil {
		return next + max(skip, 0)
	}
	for action == "done" && next < len(rules) && (len(r.of) == 0 || len(rules[next].of) >= len(r.of) &&
		slices.Equal(rules[next].of[:len(r.of)], r.of)) {
		next++
	}
	return next
}

// checkAdoption reports what keeps pam_slurm_adopt from putting a session into its job's cgroup. It reports whether
// nobody without a job gets past it.
func (c *checker) checkAdoption(conf node.SlurmConf, file string, pam []pamRule) bool {
	line := "account required pam_slurm_adopt.so join_container=false"
	if node.HostName() != c.config.Node {
		line += " nodename=" + c.config.Node
	}
	skips, refuses := walkAccount(pam)
	isRule := func(r pamRule) bool { return isAdoption(r) && r.kind == "account" }
	at := slices.IndexFunc(pam, isRule)
	other := slices.IndexFunc(pam, isAdoption)
	move, whom := "", ""
	if skips != nil { // not into a file that other services include: su and cron would need a job, too
		move = fmt.Sprintf("move the line of %s from %s to %s, above all its account lines and includes", adoption,
			pam[at].file, file)
		if skips.module == "pam_localuser.so" {
			whom = "of users in /etc/passwd "
		}
	}
	switch {
	case refuses != nil && skips == nil:
		c.fail("sessions", "correct the account lines of "+refuses.file+" (pam.d(5))",
			"the account line of %s in %s refuses every session by ssh", refuses.module, refuses.file)
	case refuses != nil:
		c.fail("sessions", move, "%s in %s skips the line of %s, and %s refuses every session by ssh", skips.module,
			skips.file, adoption, refuses.module)
	case other < 0:
		c.warn("sessions", "add this line below the other account lines of "+file+": "+line,
			"no pam_slurm_adopt: ssh sessions are not in their job's cgroup, and use CPUs, memory and GPUs that are "+
				"not the job's")
		return false
	case at < 0:
		c.fail("sessions", "write account in place of "+pam[other].kind+" in the line of "+adoption+" in "+
			pam[other].file, "%s has a line of kind %s in %s: it puts no session into its job's cgroup", adoption,
			pam[other].kind, pam[other].file)
		return false
	case skips != nil:
		c.warn("sessions", move, "PAM does not reach the line of %s: %s in %s ends the account lines before: sessions "+
			"%sare not in their job's cgroup", adoption, skips.module, skips.file, whom)
		return false
	case !pam[at].isFatal("perm_denied") && pam[at].control != "sufficient":
		control := pam[at].control
		if strings.HasPrefix(control, "[") {
			control += "]"
		}
		c.warn("sessions", "write required in place of "+control+" in the line of "+adoption+" in "+
			pam[at].file, "%s is %s in %s: users without a job get past it", adoption, control, pam[at].file)
	case !hasExternStep(conf):
		c.warn("sessions", "write PrologFlags=Contain to slurm.conf, and restart slurmctld and slurmd",
			"pam_slurm_adopt: without PrologFlags=Contain jobs have no cgroup for sessions")
	}
	c.checkLogind(pam)
	return true
}

// checkLogind reports pam_systemd, which puts a session into a scope of the user's after pam_slurm_adopt has put it
// into its job's cgroup.
func (c *checker) checkLogind(pam []pamRule) {
	i := slices.IndexFunc(pam, func(r pamRule) bool { return r.kind == "session" && r.module == "pam_systemd.so" })
	if i >= 0 && rootpath.Exists(c.node.path("/run/systemd/system")) {
		c.warn("sessions", "remove the line of pam_systemd.so from "+pam[i].file,
			"pam_systemd.so in %s takes sessions out of the cgroup into which pam_slurm_adopt has put them",
			pam[i].file)
	}
}

// checkPAMNamespaces reports modules that put a session into mounts of its own, where gojail-session refuses to run.
func (c *checker) checkPAMNamespaces(conf node.SlurmConf, pam []pamRule) {
	for _, rule := range pam {
		switch {
		case rule.kind == "session" && rule.module == "pam_namespace.so" && c.hasOwnDirectories():
			c.fail("sessions", "remove the line of pam_namespace.so from "+rule.file,
				"pam_namespace.so puts sessions into mounts of their own: gojail-session refuses them")
		case isAdoption(rule) && conf.Values["jobcontainertype"] != "" &&
			conf.Values["jobcontainertype"] != "job_container/none" &&
			!slices.Contains(strings.Fields(rule.args), "join_container=false"):
			c.fail("sessions", "add join_container=false to the line of "+adoption+" in "+rule.file,
				"pam_slurm_adopt puts sessions into the mounts of JobContainerType=%s: gojail-session refuses them",
				conf.Values["jobcontainertype"])
		}
	}
}

// hasOwnDirectories reports whether pam_namespace has directories to replace: without any it makes no namespace, as Red
// Hat has it (namespace.conf(5)).
func (c *checker) hasOwnDirectories() bool {
	files, _ := filepath.Glob(c.node.path("/etc/security/namespace.d/*.conf"))
	return slices.ContainsFunc(append(files, c.node.path("/etc/security/namespace.conf")),
		func(file string) bool { return len(node.ConfLines(file)) > 0 })
}
