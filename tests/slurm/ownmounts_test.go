// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// listOwnMounts returns the file systems that a new sandbox of debian on n1 has mounted itself, in order;
// those of its template have a source.
func listOwnMounts(t *testing.T, c *harness.Cluster) []string {
	t.Helper()
	r := c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", "/proc/self/mountinfo")
	require.Zero(t, r.Code, r)
	mounts, err := mountinfo.GetMountsFromReader(strings.NewReader(r.Stdout), nil)
	require.NoError(t, err)
	var own []string
	for _, m := range mounts {
		if m.Source == "none" {
			own = append(own, strings.Join([]string{m.FSType, m.Mountpoint, m.Options, m.VFSOptions}, " "))
		}
	}
	return own
}

// TestSiteFileSaysWhatIsMounted: C mounts what the site file lists, as it lists it, and nothing of its own.
func TestSiteFileSaysWhatIsMounted(t *testing.T) {
	c := sharedCluster(t)
	const pts = "devpts /dev/pts rw,nosuid,noexec,relatime rw,gid=5,mode=620,ptmxmode=666"
	assembleTemplates(t, c)
	planned := []string{
		"tmpfs /run rw,nosuid,nodev,relatime rw,size=65536k,nr_inodes=16384,mode=755",
		"proc /proc rw,nosuid,nodev,noexec,relatime rw,hidepid=invisible",
		"tmpfs /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime rw,size=64k,mode=755",
		pts, "mqueue /dev/mqueue rw,nosuid,nodev,noexec,relatime rw",
		"tmpfs /dev/shm rw,nosuid,nodev,relatime rw",
	}
	require.Equal(t, planned, listOwnMounts(t, c))

	path := c.Path("/run/gojail/n1/site")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.WriteFile(path, text, 0o600)) })
	changed := string(text)
	for _, change := range [][2]string{
		{"mount over tmpfs nosuid,nodev mode=755,size=64m,nr_inodes=16k /run\n", "mount over tmpfs nosuid,nodev,noexec mode=755,size=32m /run\n"},
		{"mount over proc nosuid,nodev,noexec hidepid=2 /proc\n", "mount over proc nosuid,nodev,noexec - /proc\n"},
		{"mount in mqueue nosuid,nodev,noexec - /dev/mqueue\n", ""},
		{"mount over,net sysfs", "mount over sysfs"}, // as with --jail-net
		{"mount in,mkdir,net tmpfs", "mount in,mkdir tmpfs"},
		{"mount job tmpfs nosuid,nodev mode=1777 /dev/shm\n", "mount job tmpfs nodev mode=1777,size=1m /dev/shm\n"},
	} {
		require.Contains(t, changed, change[0])
		changed = strings.ReplaceAll(changed, change[0], change[1])
	}
	require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
	for range 2 { // in place of a sandbox that was begun before, and in the next
		own := listOwnMounts(t, c)
		require.Len(t, own, 7)
		assert.Equal(t, "sysfs /sys ro,nosuid,nodev,noexec,relatime rw", own[0])
		assert.True(t, strings.HasPrefix(own[1], "tmpfs /run rw,nosuid,nodev,noexec,relatime rw,size=32768k,") && !strings.Contains(own[1], "nr_inodes=16384"), own[1])
		assert.Equal(t, []string{"proc /proc rw,nosuid,nodev,noexec,relatime rw", planned[2],
			"tmpfs /dev/infiniband rw,nosuid,noexec,relatime rw,size=64k,mode=755", pts, "tmpfs /dev/shm rw,nodev,relatime rw,size=1024k"}, own[2:])
	}
}
