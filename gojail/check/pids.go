// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"
)

// checkPIDs warns if the PIDs of each job count from 1, because the node lacks the setting with which gojail lets them
// count from another number (spank/launcher/first_pid.c). A read-only /proc/sys does not matter: gojail then mounts a
// proc of its own.
func (c *checker) checkPIDs() {
	path := cmp.Or(c.node.lastPID, "/proc/sys/kernel/ns_last_pid")
	isolated := false
	for _, j := range c.config.Jails {
		isolated = isolated || slices.Contains(j.Isolation.Namespaces, "pid")
	}
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	if !isolated || err == nil || err == unix.EROFS {
		return
	}
	c.warn("kernel", "boot a kernel with CONFIG_CHECKPOINT_RESTORE; in a container, permit slurmd to write there",
		"%s: %v; the PIDs of each job count from 1, and files on shared storage that jobs name by PID collide",
		path, err)
}
