// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"
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
	for _, name := range names {
		if j := c.config.Jails[name]; j != nil && !j.Slurm {
			c.warn("sessions", fmt.Sprintf("write slurm = true in [jail.%s]", name), "jail %s: users cannot start jobs from sessions on this login node", name)
		}
	}
}
