// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
)

// checkForeign reports sandboxes that a version of gojail with another contract has made and whose holder runs: no step
// and no session can enter them, and none is built beside them.
func (c *checker) checkForeign() {
	if _, err := os.Lstat(c.node.State); err != nil {
		return
	}
	s, err := state.OpenState(c.node.State)
	if err != nil {
		return // reported by the check of the state directory
	}
	jobs, err := s.Jobs()
	if err != nil {
		return
	}
	var foreign []string
	for _, job := range jobs {
		if !slices.ContainsFunc(job.Sandboxes, func(r state.Record) bool { return r.IsForeign() && r.Lives() }) {
			continue
		}
		if uid, isLogin := strings.CutPrefix(job.ID, contract.LoginPrefix); isLogin {
			c.warn("sessions", "run: loginctl terminate-user "+uid, "%s is a sandbox of another version of gojail: "+
				"while processes are in it, user %s cannot log in", job.ID, uid)
			continue
		}
		foreign = append(foreign, job.ID)
	}
	if len(foreign) > 0 {
		c.warn("jobs", "drain the node and resume it when they have ended, or requeue them",
			"a version of gojail with another contract made the "+
				"sandboxes of these jobs, whose running steps go on and whose further steps are refused: %s",
			strings.Join(foreign, " "))
	}
}
