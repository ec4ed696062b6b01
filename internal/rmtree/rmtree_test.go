// SPDX-License-Identifier: Apache-2.0

package rmtree

import (
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/rootpath"
)

func TestRemoveTreeFollowsNothing(t *testing.T) {
	nstest.NoLeaks(t)
	dir, outside := t.TempDir(), t.TempDir()
	nstest.WriteFile(t, outside+"/precious", "")
	require.NoError(t, os.MkdirAll(dir+"/top/a/b/c", 0o755))
	nstest.Symlink(t, outside, dir+"/top/link")
	nstest.Symlink(t, outside, dir+"/top/a/b/c/link")
	require.NoError(t, unix.Mkfifo(dir+"/top/a/fifo", 0o600))
	require.NoError(t, Remove(dir, "top", soon()))
	assert.NoDirExists(t, dir+"/top")
	assert.FileExists(t, outside+"/precious")

	nstest.Symlink(t, outside, dir+"/top")
	require.NoError(t, Remove(dir, "top", soon()))
	assert.FileExists(t, outside+"/precious")
	assert.NoError(t, Remove(dir+"/absent", "top", soon()))
}

// Deeper than descriptors, and than a path can be long.
func TestRemoveTreeDeep(t *testing.T) {
	dir := t.TempDir()
	deepTree(t, dir+"/top", 5000)
	require.NoError(t, Remove(dir, "top", soon()))
	assert.NoDirExists(t, dir+"/top")
}

// TestRemoveTreeWithoutNoReplace: FUSE, like NFS, does not support RENAME_NOREPLACE. Names that a killed removal left are in use.
func TestRemoveTreeWithoutNoReplace(t *testing.T) {
	nstest.NeedRoot(t)
	if _, err := exec.LookPath("bindfs"); err != nil {
		t.Skip("needs bindfs, which make deps installs")
	}
	behind, dir := t.TempDir(), t.TempDir()
	daemon := exec.Command("bindfs", "-f", behind, dir)
	require.NoError(t, daemon.Start())
	t.Cleanup(func() {
		assert.NoError(t, unix.Unmount(dir, unix.MNT_DETACH))
		daemon.Wait()
	})
	require.Eventually(t, func() bool {
		var st unix.Statfs_t
		return unix.Statfs(dir, &st) == nil && st.Type == unix.FUSE_SUPER_MAGIC
	}, time.Minute, time.Millisecond)
	require.NoError(t, os.MkdirAll(dir+"/top/a/b/c/d/e", 0o755))
	require.NoError(t, os.MkdirAll(dir+"/top/f/g/h", 0o755))
	nstest.WriteFile(t, dir+"/top/a/b/file", "")
	assert.Equal(t, unix.EINVAL, unix.Renameat2(unix.AT_FDCWD, dir+"/top/a", unix.AT_FDCWD, dir+"/top/z", unix.RENAME_NOREPLACE))
	nstest.WriteFile(t, fmt.Sprintf("%s/top/.gojail-%d-1", dir, os.Getpid()), "")
	require.NoError(t, os.MkdirAll(fmt.Sprintf("%s/top/.gojail-%d-2/full", dir, os.Getpid()), 0o755))
	require.NoError(t, Remove(dir, "top", soon()))
	assert.NoDirExists(t, behind+"/top")
}

func TestRemoveTreeWide(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/top/tmp", 0o755))
	for i := range 10000 {
		require.NoError(t, os.Symlink("x", fmt.Sprintf("%s/top/tmp/%d", dir, i)))
	}
	require.NoError(t, Remove(dir, "top", soon()))
	assert.NoDirExists(t, dir+"/top")
}

// A process that exchanges a directory for a symlink all the time leads nobody out.
func TestRemoveTreeAgainstAnExchanger(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	nstest.WriteFile(t, outside+"/precious", "")
	var stop atomic.Bool
	done := make(chan int)
	go func() {
		turns := 0
		for ; !stop.Load(); turns++ {
			os.MkdirAll(dir+"/top/tmp/x/y", 0o755)
			os.Symlink(outside, dir+"/top/tmp/z")
			unix.Renameat2(unix.AT_FDCWD, dir+"/top/tmp/x", unix.AT_FDCWD, dir+"/top/tmp/z", unix.RENAME_EXCHANGE)
		}
		done <- turns
	}()
	for range 200 {
		Remove(dir, "top", soon()) // may well lose the race
	}
	stop.Store(true)
	t.Logf("%d turns", <-done)
	assert.FileExists(t, outside+"/precious")
	require.NoError(t, Remove(dir, "top", soon()))
}

// TestRemoveTreeSeizesDirectories: a descriptor that is passed to another process of the user is worth nothing any more.
func TestRemoveTreeSeizesDirectories(t *testing.T) {
	nstest.NeedRoot(t)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/top/tmp", 0o777))
	require.NoError(t, os.Chmod(dir+"/top/tmp", 0o777))
	nstest.WriteFile(t, dir+"/top/tmp/file", "x")
	passed, err := rootpath.OpenDirectory(unix.AT_FDCWD, dir+"/top/tmp", 0)
	require.NoError(t, err)
	defer passed.Close()
	r := &remover{until: soon()}
	top, err := rootpath.OpenDirectory(unix.AT_FDCWD, dir+"/top", 0)
	require.NoError(t, err)
	defer top.Close()
	require.NoError(t, r.open(top, "tmp", dir+"/top", func(*os.File, string) error {
		var st unix.Stat_t
		require.NoError(t, unix.Fstat(int(passed.Fd()), &st))
		assert.Zero(t, st.Uid)
		assert.EqualValues(t, 0o700, st.Mode&0o7777)
		return nil
	}))
}

func deepTree(t *testing.T, path string, depth int) {
	t.Helper()
	require.NoError(t, os.Mkdir(path, 0o755))
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	for range depth {
		require.NoError(t, unix.Mkdirat(fd, "d", 0o755))
		next, err := unix.Openat(fd, "d", unix.O_PATH|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
}

func soon() time.Time { return time.Now().Add(time.Minute) }
