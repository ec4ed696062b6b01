// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// withheld are the capabilities that a container's slurmd may lack, and what fails without them: a step in a jail, one with
// --jail-root, or none. Without CAP_SETGID and CAP_SETUID slurmd itself starts no step.
var withheld = []struct{ capability, fails string }{
	{"chown", "cannot create the job's scratch directory"},
	{"setpcap", "cannot drop capability"},
	{"sys_chroot", "cannot leave the stage"},
	{"mknod", "mknod on /dev/null"},
	{"sys_admin", "cannot create a mount namespace"},
	{"sys_ptrace", "of a user namespace"},
	{"dac_read_search", ""}, {"fowner", ""}, {"fsetid", ""}, {"kill", ""}, {"net_admin", ""}, {"net_raw", ""}, {"setfcap", ""},
	{"sys_resource", ""}, {"sys_nice", ""}, {"ipc_lock", ""}, {"audit_write", ""}, {"sys_module", ""}, {"sys_rawio", ""}, {"sys_time", ""},
}

// TestSlurmdWithoutACapability: each taken away once from slurmd, as a container has it. No step leaves its jail for it, and
// gojail check names what is missing.
func TestSlurmdWithoutACapability(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian", "other"}, Config: rooted})
	for _, w := range withheld {
		t.Run(w.capability, func(t *testing.T) {
			without := []string{"/usr/bin/setpriv", "--bounding-set=-" + w.capability}
			require.NoError(t, c.StopSlurmd("n2"))
			require.Zero(t, c.Gojail("n2", "reload").Code)
			require.NoError(t, c.StartSlurmd("n2", without...))
			require.True(t, c.WaitIdle())
			check := c.Root(append(without, "gojail", "--node=n2", "--state=/run/gojail/%n", "check")...).Stdout
			name := "CAP_" + strings.ToUpper(w.capability)
			for _, step := range []struct {
				args  []string
				fails bool
			}{
				{nil, w.fails != "" && w.capability != "sys_ptrace"},
				{[]string{"--jail-root=self"}, w.fails != ""},
			} {
				r := c.Run(harness.Alice, append(append([]string{"srun", "-wn2", "--jail=debian"}, step.args...), "cat", marker)...)
				if step.fails {
					assert.NotZero(t, r.Code, r)
					assert.Empty(t, r.Stdout, r)
					assert.Contains(t, r.Stderr, w.fails)
					continue
				}
				requireOutput(t, "debian", r)
			}
			assert.Equal(t, w.fails != "", strings.Contains(check, fmt.Sprintf("capabilities: root lacks %s here", name)), check)
		})
	}
	require.NoError(t, c.RestartSlurmd("n2"))
	assert.True(t, c.WaitIdle(), c.Drained())
}

// TestSlurmdInAPod: what Kubernetes and container runtimes change: files of a ConfigMap, whose directory anybody might
// write to or not, masked files of /proc and a read-only /proc/sys and /sys.
func TestSlurmdInAPod(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian", "other"}, Config: rooted})
	const configMap = "mkdir -p /run/map; mount -t tmpfs -o mode=%s none /run/map; mkdir /run/map/..1; cp /etc/gojail/gojail.toml /run/map/..1; " +
		"ln -s ..1 /run/map/..data; ln -s ..data/gojail.toml /run/map/gojail.toml; mount -o remount,ro /run/map; mount --bind /run/map /etc/gojail"
	for _, pod := range []struct{ name, script, fails string }{
		{"the directory of a ConfigMap", fmt.Sprintf(configMap, "0777"), "the directory /etc/gojail of the configuration can be changed by others than root"},
		{"files of a ConfigMap in a directory of root's", fmt.Sprintf(configMap, "0755"), ""},
		{"masked /proc", "mount --bind /dev/null /proc/keys; mount -t tmpfs -o ro none /proc/fs; mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys", ""},
		{"read-only /sys", "mount -o remount,bind,ro /sys", ""},
	} {
		t.Run(pod.name, func(t *testing.T) {
			startApart(t, c, pod.script)
			require.Zero(t, c.Gojail("n2", "reload").Code)
			require.True(t, c.WaitIdle())
			for _, root := range []string{"none", "self"} {
				r := c.Run(harness.Alice, "srun", "-wn2", "--jail=debian", "--jail-root="+root, "cat", marker)
				if pod.fails != "" {
					requireRefused(t, pod.fails, r)
					assert.Empty(t, r.Stdout, r)
					continue
				}
				requireOutput(t, "debian", r)
			}
		})
	}
	require.NoError(t, c.RestartSlurmd("n2"))
	assert.True(t, c.WaitIdle(), c.Drained())
}
