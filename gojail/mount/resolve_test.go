// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/mount/mounttest"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/nstest"
)

type unixStat = syscall.Stat_t

// Targets are resolved in the jail, whatever symlinks its content has.
func TestTargetsStayInTheRoot(t *testing.T) {
	nstest.NoLeaks(t)
	outside := t.TempDir()
	for name, c := range map[string]struct{ link, where string }{
		"absolute":        {outside, ""},
		"absolute inside": {"/data", "/data"},
		"relative":        {"../../../../../../data", "/data"},
		"up and out":      {"../../../../../.." + outside, ""},
		"magic":           {"/proc/self/root/data", "magic"},
		"magic cwd":       {"/proc/self/cwd", "magic"},
		"loop":            {"/trap", "loop"},
		"to the root":     {"/..", "root"},
		"into a tmpfs":    {"/run/made", ""},
	} {
		root := mounttest.SmallTree(t)
		nstest.Symlink(t, c.link, filepath.Join(root, "trap"))
		v := mounttest.SmallView(root)
		v.Spec.Mounts = append(v.Spec.Mounts, specs.Mount{Destination: "/trap", Type: "tmpfs", Source: "trapped"})
		out, err := applyInChild(t, v)
		switch c.where {
		case "":
			assert.EqualError(t, err, "jail small: mount target /trap is missing in "+root+"; create it once with: gojail init small", name)
		case "magic", "loop":
			assert.EqualError(t, err, "jail small: mount target /trap in "+root+" is a symlink that must not be followed", name)
		case "root":
			assert.EqualError(t, err, "jail small: mount target /trap in "+root+" is the root itself", name)
		default:
			if assert.NoError(t, err, name) {
				m := nstest.MountOf(out.Mounts, c.where)
				if assert.NotNil(t, m, name) {
					assert.Equal(t, "trapped", m.Source, name)
				}
			}
		}
		left, err := os.ReadDir(outside)
		require.NoError(t, err)
		assert.Empty(t, left, name)
	}
}

// Devices and links go only on file systems that the view mounted itself.
func TestNodesOnlyOnOwnFilesystems(t *testing.T) {
	nstest.NoLeaks(t)
	root := mounttest.SmallTree(t)
	v := mounttest.SmallView(root)
	v.Spec.Linux.Devices = append(v.Spec.Linux.Devices, specs.LinuxDevice{Path: "/data/null", Type: "c", Major: 1, Minor: 3})
	_, err := applyInChild(t, v)
	assert.EqualError(t, err, "jail small: device /data/null: mount target /data/null is missing in "+root+"; create it once with: gojail init small")

	v = mounttest.SmallView(root)
	v.Links = append(v.Links, plan.Link{Path: "/data/link", Target: "/etc"})
	_, err = applyInChild(t, v)
	assert.ErrorContains(t, err, "link /data/link: mount target /data/link is missing")

	v = mounttest.SmallView(root)
	v.Links = append(v.Links, plan.Link{Path: "/dev/null", Target: "/etc"})
	_, err = applyInChild(t, v)
	assert.ErrorContains(t, err, "symlink /etc on /dev/null: file exists")
	left, err := os.ReadDir(filepath.Join(root, "data"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestSplitLayers(t *testing.T) {
	long := strings.Repeat("/x", 100)
	assert.Equal(t, []string{"a", "lowerdir=/b:/c"}, splitLayers([]string{"a", "lowerdir=/b:/c"}))
	assert.Equal(t, []string{"lowerdir+=" + long, "lowerdir+=" + long}, splitLayers([]string{"lowerdir=" + long + ":" + long}))
}

func TestParseMountOptionsLastWins(t *testing.T) {
	o, err := parseMountOptions([]string{"ro", "rw", "suid", "nosuid", "noatime"})
	require.NoError(t, err)
	assert.Equal(t, uint64(syscall.MS_NOSUID|0x10), o.set)
	assert.Equal(t, uint64(syscall.MS_RDONLY|0x70), o.clear)
	_, err = parseMountOptions([]string{""})
	assert.Error(t, err)
}
