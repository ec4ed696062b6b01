// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestMounts(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mountinfo"), []byte(
		"22 1 8:1 / / rw,relatime shared:1 master:2 - ext4 /dev/sda1 rw,errors=remount-ro\n"+
			"30 22 0:4 net:[4026532281] /run/netns/with\\040blank rw - nsfs nsfs rw\n"+
			"31 22 0:40 /a /mnt rw - tmpfs  rw\n"), 0o600)) // a mount without a source
	mounts, err := ReadMounts(dir)
	require.NoError(t, err)
	require.Len(t, mounts, 3)
	assert.Equal(t, "net:[4026532281]", mounts[1].Root)
	assert.Equal(t, "/run/netns/with blank", mounts[1].Mountpoint)
	assert.Equal(t, "tmpfs", mounts[2].FSType)

	_, root, err := OpenMounts(dir)
	assert.ErrorIs(t, err, unix.ENOENT)
	assert.Equal(t, -1, root)
	_, _, err = OpenMounts(filepath.Join(dir, "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	mounts, root, err = OpenMounts("/proc/self")
	require.NoError(t, err)
	defer unix.Close(root)
	assert.NotEmpty(t, mounts)
}
