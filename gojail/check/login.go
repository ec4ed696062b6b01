// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
)

// checkLogin reports in which jails sessions on a login node are, and those in which Slurm's commands are missing.
func (c *checker) checkLogin() {
	var names []string
	for _, rule := range c.config.Login.Rules {
		if !slices.Contains(names, rule.Jail) {
			names = append(names, rule.Jail)
		}
	}
	c.ok("sessions", "a login node: sessions are in %s", strings.Join(names, ", "))
	c.checkEarlierLogins()
	for _, name := range names {
		if j := c.config.Jails[name]; j != nil && !j.Slurm {
			c.warn("sessions", fmt.Sprintf("write slurm = true in [jail.%s]", name), "jail %s: users cannot start jobs from sessions on this login node", name)
		}
	}
}

// checkEarlierLogins reports sandboxes of sessions that another version of gojail has built, and whose holder runs: no session can
// enter them, and while processes are in them none is built beside.
func (c *checker) checkEarlierLogins() {
	if _, err := os.Lstat(c.node.State); err != nil {
		return
	}
	s, err := state.OpenState(c.node.State)
	if err != nil {
		return // reported by the check of the node
	}
	jobs, err := s.Jobs()
	if err != nil {
		return
	}
	for _, job := range jobs {
		uid, isLogin := strings.CutPrefix(job.ID, contract.LoginPrefix)
		if isLogin && slices.ContainsFunc(job.Sandboxes, func(r state.Record) bool { return r.Damaged && r.Lives() }) {
			c.warn("sessions", "run: loginctl terminate-user "+uid, "%s is a sandbox of another version of gojail: "+
				"while processes are in it, user %s cannot log in", job.ID, uid)
		}
	}
}
