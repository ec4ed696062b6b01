// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

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
		c.fail(subject, fix, "%v", strings.TrimPrefix(err.Error(), subject+": "))
	}
	if _, err := node.CompileFilter(j); err != nil {
		fail("correct the profile, or seccomp =", err)
	}
	if j.Isolation.Abstract == config.AbstractStep {
		if ruleset, err := openScope(); err != nil {
			fail(`boot Linux 6.12 or newer with landlock among lsm=, or write abstract_sockets = "node"`,
				fmt.Errorf("this node's kernel cannot restrict abstract sockets: %w", err))
		} else {
			unix.Close(ruleset)
		}
	}
	if j.Tmp == config.TmpDisk && j.TmpSize > 0 {
		if err := quota.Enforced(c.config.Scratch); err != nil {
			fail(`mount it with prjquota, or write tmp = "tmpfs"`, err)
		}
	}
	if len(j.Isolation.JailRoot) > 0 {
		text, err := os.ReadFile("/proc/sys/user/max_user_namespaces") // user_namespaces(7)
		if err == nil && strings.TrimSpace(string(text)) == "0" {
			fail("sysctl -w user.max_user_namespaces=65536, or remove jail_root", errors.New("this node does not permit user namespaces"))
		}
	}
	if slices.Contains(j.Isolation.JailRoot, "range") {
		if remedy, err := c.checkRange(j, root); err != nil {
			fail(remedy, err)
		} else {
			c.ok(subject, "--jail-root=range: Slurm's commands do not work there, and a mode or ACL that denies to a group, or user, what it grants to others (0604) does not hold there")
		}
	}
	return good
}

// openScope opens the Landlock domain of abstract_sockets = "step"; it fails where the kernel has no Landlock, or none with this
// scope: E2BIG.
func openScope() (int, error) {
	attr := struct{ fs, net, scoped uint64 }{scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}
