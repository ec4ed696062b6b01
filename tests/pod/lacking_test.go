// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unprivileged returns the options of a container without privilege that has all capabilities. What its runtime masks
// is masked unless the options say otherwise.
func unprivileged(options ...string) []string {
	return append([]string{"--cap-add=all", "--device=/dev/full:" + gpu}, options...)
}

// open lifts what a runtime restricts besides.
var open = []string{"--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined", "--security-opt=unmask=ALL"}

// lacking are capabilities that slurmd's container may lack, and what fails without them: each step, or those with --jail-root; and
// what gojail check says of it. Without CAP_SETUID and CAP_SETGID slurmd itself runs no step.
var lacking = []struct{ capability, step, rooted, check string }{
	{"chown", "cannot create the job's scratch directory", "cannot create the job's scratch directory", "FAIL"},
	{"setpcap", "cannot drop capability", "cannot drop capability", "FAIL"},
	{"sys_chroot", "cannot leave the stage", "cannot leave the stage", "FAIL"},
	{"mknod", "mknod on /dev/null", "mknod on /dev/null", "FAIL"},
	{"sys_admin", "cannot create a mount namespace", "cannot create a mount namespace", "FAIL"},
	{"setuid", "slurmd", "slurmd", "FAIL"},
	{"setgid", "slurmd", "slurmd", "FAIL"},
	{"sys_ptrace", "", "of a user namespace", "WARN"},
	{"net_admin", "", "", "WARN"},
	{"dac_override", "", "", ""},
	{"dac_read_search", "", "", ""},
	{"fowner", "", "", ""},
	{"kill", "", "", ""},
	{"bpf", "", "", ""},
	{"sys_nice", "", "", ""},
}

// TestContainerWithoutACapability: each taken away once from a container that has all others. No step leaves its jail for it,
// and gojail check names what is missing.
func TestContainerWithoutACapability(t *testing.T) {
	c := sharedCluster(t)
	for _, l := range lacking {
		t.Run(l.capability, func(t *testing.T) {
			without := unprivileged(append(open, "--cap-drop="+l.capability, "--volume="+c.dir+"/network:/network:ro")...)
			c.startNode(t, node{security: without, bare: true, down: l.step == "slurmd"})
			if l.step != "slurmd" {
				r := c.onNode("gojail", "init", "debian")
				require.Zero(t, r.Code, r)
				c.requireStep(t, l.step)
				c.requireStep(t, l.rooted, "--jail-root=self")
			}
			if l.capability == "net_admin" { // which only networks for jobs need
				require.Zero(t, c.onNode("cp", "/network/network.toml", "/etc/gojail").Code)
			}
			check := c.onNode("gojail", "check")
			name := "capabilities: root lacks CAP_" + strings.ToUpper(l.capability) + " here"
			if l.check == "" {
				assert.NotContains(t, check.Stdout, "root lacks", check)
			} else {
				assert.Regexp(t, "(?m)^"+l.check+" +"+name, check.Stdout, check)
			}
		})
	}
}

// requireStep requires that a step runs in the jail, or fails there, and why.
func (c *cluster) requireStep(t *testing.T, fails string, options ...string) {
	t.Helper()
	r := c.srun(append(options, "cat", marker)...)
	if fails == "" {
		requireOutput(t, "debian", r)
		return
	}
	assert.NotZero(t, r.Code, r)
	assert.Empty(t, r.Stdout, r)
	assert.Contains(t, r.Stderr, fails, r)
}

// masked are the paths that runtimes hide in containers without privilege, as far as this machine may have them.
var masked = []string{"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug",
	"/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/dev/block", "/sys/devices/virtual/powercap", "/sys/firmware", "/sys/fs/selinux"}

// TestMaskedPaths: each path that runtimes mask, then all of them with what they make read-only and their profile of seccomp:
// steps run in the jail, as a user and as the job's root, and gojail check has nothing to say.
func TestMaskedPaths(t *testing.T) {
	c := sharedCluster(t)
	// Slurm needs its cgroups all the same.
	all := map[string][]string{"the runtime's own restrictions": unprivileged("--security-opt=unmask=/sys/fs/cgroup")}
	for _, path := range masked {
		all[path] = unprivileged(append(open, "--security-opt=mask="+path)...)
	}
	for name, options := range all {
		t.Run(name, func(t *testing.T) {
			c.startNode(t, node{security: options})
			_, err := os.Stat(name)
			if mounts := c.onNode("cut", "-d ", "-f5", "/proc/self/mountinfo").Stdout; err == nil {
				assert.Contains(t, strings.Fields(mounts), name)
			} else if !strings.HasPrefix(name, "/") {
				assert.Subset(t, strings.Fields(mounts), []string{"/proc/keys", "/proc/sys", "/sys/firmware"})
			}
			c.requireStep(t, "")
			c.requireStep(t, "", "--jail-root=self")
			check := c.onNode("gojail", "check")
			assert.Zero(t, check.Code, check)
			assert.NotContains(t, check.Stdout, "FAIL", check)
		})
	}
}
