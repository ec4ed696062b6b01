// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
)

// needed are the capabilities without which no step enters a jail (tests/slurm/pod_test.go takes each away). Root of a
// container often lacks some.
var needed = []capability{
	{unix.CAP_CHOWN, "CAP_CHOWN"}, {unix.CAP_SETGID, "CAP_SETGID"}, {unix.CAP_SETUID, "CAP_SETUID"},
	{unix.CAP_SETPCAP, "CAP_SETPCAP"},
	{unix.CAP_SYS_CHROOT, "CAP_SYS_CHROOT"}, {unix.CAP_MKNOD, "CAP_MKNOD"}, {unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
}

type capability struct {
	number uint
	name   string
}

// checkCapabilities checks what this process may do, which is what slurmd may do that was started in the same
// container.
func (c *checker) checkCapabilities() {
	if os.Geteuid() != 0 {
		return // which says nothing of slurmd
	}
	var set [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &set[0]); err != nil {
		return
	}
	has := func(one capability) bool { return set[one.number/32].Effective&(1<<(one.number%32)) != 0 }
	var missing []string
	for _, one := range needed {
		if !has(one) {
			missing = append(missing, one.name)
		}
	}
	if len(missing) > 0 {
		c.fail("capabilities", "give them to slurmd's container, see docs/kubernetes.md",
			"root lacks %s here: where slurmd lacks them too, every step in a jail fails", strings.Join(missing, ", "))
	}
	if c.hasNetworks() && !has(capability{unix.CAP_NET_ADMIN, ""}) {
		c.warn("capabilities", "give it to slurmd's container",
			"root lacks CAP_NET_ADMIN here: where slurmd lacks it too, steps with --jail-net fail")
	}
	if c.permitsRoot() && !has(capability{unix.CAP_SYS_PTRACE, ""}) {
		c.warn("capabilities", "give it to slurmd's container",
			"root lacks CAP_SYS_PTRACE here: where slurmd lacks it too, steps with --jail-root fail")
	}
}

// hasNetworks reports whether the node gives jobs networks of their own.
func (c *checker) hasNetworks() bool {
	return c.config != nil && rootpath.Exists(filepath.Join(filepath.Dir(c.config.Path), contract.NetworkConfig))
}

// permitsRoot reports whether a jail permits --jail-root.
func (c *checker) permitsRoot() bool {
	if c.config == nil {
		return false
	}
	for _, j := range c.config.Jails {
		if len(j.Isolation.JailRoot) > 0 {
			return true
		}
	}
	return false
}
