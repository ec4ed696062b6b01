// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/nstest"
)

func init() {
	// The input is a directory with tree/proc and an empty mnt.
	nstest.Actions["initOnStorage"] = func(dir string) (any, error) {
		if err := nstest.MakePrivate(); err != nil {
			return nil, err
		}
		found := map[string]string{}
		for _, storage := range []struct {
			name string
			show func(at string) (stop func(), err error)
		}{
			{"squashed", func(at string) (func(), error) { return nstest.MountSquashed(dir+"/tree", at) }},
			{"read-only", func(at string) (func(), error) {
				if err := unix.Mount(dir+"/tree", at, "", unix.MS_BIND, ""); err != nil {
					return nil, err
				}
				return func() { unix.Unmount(at, unix.MNT_DETACH) }, unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
			}},
			{"full", func(at string) (func(), error) { // room for the lock only
				if err := unix.Mount("none", at, "tmpfs", 0, "mode=755,nr_inodes=3"); err != nil {
					return nil, err
				}
				return func() { unix.Unmount(at, unix.MNT_DETACH) }, os.Mkdir(at+"/proc", 0o755)
			}},
			{"through FUSE", func(at string) (func(), error) { return nstest.MountFUSE(dir+"/tree", at) }},
		} {
			at := filepath.Join(dir, "mnt")
			stop, err := storage.show(at)
			if err != nil {
				return nil, err
			}
			if _, err := makeTargetsAt(at); err != nil {
				found[storage.name] = err.Error()
			}
			stop()
		}
		return found, nil
	}
}

// makeTargetsAt creates the mount targets of a jail with that root.
func makeTargetsAt(root string) ([]plan.Target, error) {
	c, err := config.ParseConfig("default = \"a\"\n[jail.a]\nroot = \""+root+"\"\nslurm = false\nhost = []\n", "")
	if err != nil {
		return nil, err
	}
	v, err := plan.Jail(c, c.Jails["a"], &node.HostFacts{})
	if err != nil {
		return nil, err
	}
	return MakeTargets(c, c.Jails["a"], v, time.Now().Add(time.Minute))
}

// Where the storage takes no targets, one line says why, and where to run init instead.
func TestMakeTargetsOnStorageThatRefuses(t *testing.T) {
	nstest.NeedFUSE(t)
	dir := t.TempDir()
	for path := dir; path != "/tmp" && path != "/"; path = filepath.Dir(path) {
		require.NoError(t, os.Chmod(path, 0o755)) // nobody's server reads the tree
	}
	for _, sub := range []string{"tree/proc", "mnt"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, sub), 0o755))
	}
	var found map[string]string
	require.NoError(t, nstest.RunText(t, "initOnStorage", dir, &found))
	root := dir + "/mnt"
	assert.Equal(t, map[string]string{
		"squashed": "jail a: the storage does not let root of this node write to " + root + " (cannot create the file /.gojail.lock: permission denied): is root squashed there? " +
			"Run it on a node that the export trusts (no_root_squash, exports(5)), or on the server",
		"read-only": "jail a: " + root + " is read-only on this node (cannot create the file /.gojail.lock); run it on a node that mounts it writable",
		"full":      "jail a: the file system of " + root + " is full (cannot create the directory /sys: no space left on device); free space and inodes there, then run it again",
	}, found)
}
