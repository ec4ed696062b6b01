// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"slices"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/quota"
)

// checkIsolation reports whether the node supports the isolation that the jail configures. For
// --jail-root=range it maps the ids of the open root, if that is an image's.
func (c *checker) checkIsolation(j *config.Jail, root int) bool {
	subject := "jail " + j.Name
	good := true
	fail := func(fix string, err error) {
		good = false
		c.fail(subject, fix, "%v", config.CutJail(j.Name, err))
	}
	if _, err := node.CompileFilter(j); err != nil {
		fail("correct the profile, or seccomp =", err)
	}
	if j.Isolation.Abstract == config.AbstractStep {
		if err := ProbeScope(); err != nil {
			fail(`boot Linux 6.12 or newer with landlock among lsm=, or write abstract_sockets = "node"`, err)
		}
	}
	if j.Tmp == config.TmpDisk && j.TmpSize > 0 {
		err := quota.Enforced(c.config.Scratch)
		if errors.Is(err, quota.ErrOldKernel) {
			fail(`boot Linux 5.14 or newer with quotas, or write tmp = "tmpfs"`, err)
		} else if err != nil {
			fail(`mount it with prjquota, or write tmp = "tmpfs"`, err)
		}
	}
	if len(j.Isolation.JailRoot) > 0 {
		if argument := findUsernsRefusal(sysctlDir, false); argument != "" {
			fail("sysctl -w "+argument+", or remove jail_root", errors.New("this node does not permit user namespaces"))
		}
	}
	c.checkContainers(subject, j)
	if slices.Contains(j.Isolation.JailRoot, "range") {
		if remedy, err := c.checkRange(j, root); err != nil {
			fail(remedy, err)
		} else {
			c.ok(subject, "--jail-root=range: Slurm's commands do not work there, and a mode or ACL that denies to a "+
				"group, or user, what it grants to others (0604) does not hold there")
		}
	}
	return good
}
