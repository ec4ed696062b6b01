// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/nstest"
)

func init() {
	// The input is a directory with tree/jail/root and an empty mnt.
	nstest.Actions["closeOnStorage"] = func(dir string) (any, error) {
		if err := nstest.MakePrivate(); err != nil {
			return nil, err
		}
		var remedies []string
		for _, show := range []func(source, dir string) (func(), error){
			nstest.MountSquashed,
			func(source, dir string) (func(), error) { return nstest.MountFUSE(source, dir) },
		} {
			stop, err := show(dir+"/tree", dir+"/mnt")
			if err != nil {
				return nil, err
			}
			remedy, err := findSuidRemedy(dir)
			stop()
			if err != nil {
				return nil, err
			}
			remedies = append(remedies, remedy)
		}
		return remedies, nil
	}
}

// findSuidRemedy returns the remedy for a jail at mnt/jail, with a mount on which set-user-ID files work.
func findSuidRemedy(dir string) (string, error) {
	if err := unix.Mount("", dir+"/mnt", "", unix.MS_REMOUNT|unix.MS_BIND, ""); err != nil {
		return "", err
	}
	root, err := node.OpenJail(&config.Jail{Root: dir + "/mnt/jail"})
	if err != nil {
		return "", err
	}
	defer unix.Close(root)
	v, err := ReadMountView("self")
	if err != nil {
		return "", err
	}
	defer v.Close()
	own, err := v.RegionOf(root)
	if err != nil {
		return "", err
	}
	suid := (*SuidError)(nil)
	if err := RefuseSuid(&config.Config{}, own); !errors.As(err, &suid) {
		return "", err
	}
	return suid.Remedy(), nil
}

// On storage that squashes root, a directory above the root that is closed to others is closed to root of
// the node, too: it is not proposed.
func TestNobodyIsToldToCloseStorageToRoot(t *testing.T) {
	nstest.NeedFUSE(t)
	dir := t.TempDir()
	for path := dir; path != "/tmp" && path != "/"; path = filepath.Dir(path) {
		require.NoError(t, os.Chmod(path, 0o755))
	}
	require.NoError(t, os.MkdirAll(dir+"/tree/jail", 0o755))
	require.NoError(t, os.Mkdir(dir+"/tree/jail/root", 0o700))
	require.NoError(t, os.Mkdir(dir+"/mnt", 0o755))
	var remedies []string
	require.NoError(t, nstest.RunText(t, "closeOnStorage", dir, &remedies))
	mnt := dir + "/mnt"
	assert.Equal(t, []string{
		"mount it nosuid: mount -o remount,bind,nosuid " + mnt,
		"mount it nosuid (mount -o remount,bind,nosuid " + mnt + "), or restrict a directory above it: chmod 700 " + mnt,
	}, remedies)
}
