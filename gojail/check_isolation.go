// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		if err := refuseSuid(j.Root); err != nil {
			fail("chmod 700 "+filepath.Dir(j.Root), err)
		}
	}
	return good
}
