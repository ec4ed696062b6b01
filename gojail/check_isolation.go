// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// isolation looks whether the node can do what the jail keeps from its tasks.
func (k *checker) isolation(j *Jail) bool {
	subject := "jail " + j.Name
	good := true
	fail := func(fix string, err error) {
		good = false
		k.fail(subject, fix, "%v", strings.TrimPrefix(err.Error(), subject+": "))
	}
	if _, err := j.Filter(); err != nil {
		fail("correct the profile, or seccomp =", err)
	}
	if j.Isolation.Abstract == AbstractStep {
		if ruleset, err := scopeRuleset(); err != nil {
			fail(`boot Linux 6.12 or newer with landlock among lsm=, or write abstract_sockets = "node"`,
				fmt.Errorf("this node's kernel cannot keep abstract sockets apart: %w", err))
		} else {
			unix.Close(ruleset)
		}
	}
	if j.Tmp == TmpDisk && j.TmpSize > 0 {
		if err := quotaEnforced(k.config.Scratch); err != nil {
			fail(`mount it with prjquota, or write tmp = "tmpfs"`, err)
		}
	}
	if len(j.Isolation.JailRoot) > 0 {
		text, err := os.ReadFile("/proc/sys/user/max_user_namespaces") // user_namespaces(7)
		if err == nil && strings.TrimSpace(string(text)) == "0" {
			fail("sysctl -w user.max_user_namespaces=65536, or take jail_root out", errors.New("this node lets no user namespace be made"))
		}
	}
	if slices.Contains(j.Isolation.JailRoot, "range") {
		if remedy, err := k.config.tryRange(j); err != nil {
			fail(remedy, err)
		}
	}
	return good
}
