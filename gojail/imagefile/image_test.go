// SPDX-License-Identifier: Apache-2.0

package imagefile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/imagefile/imagefiletest"
	"github.com/gojail/gojail/internal/nstest"
)

func TestMount(t *testing.T) {
	imagefiletest.Need(t)
	nstest.NoLeaks(t)
	for _, kind := range []string{"squashfs", "erofs"} {
		path := imagefiletest.Make(t, kind, imagefiletest.Tree(t))
		before := imagefiletest.LoopDevices(t, path)
		i, err := Open(path, nil)
		require.NoError(t, err)
		root, err := i.Mount()
		require.NoError(t, err)
		require.NoError(t, i.Close())

		text, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d/etc/hostname", root))
		assert.NoError(t, err)
		assert.Equal(t, "image\n", string(text))
		assert.Equal(t, unix.EROFS, unix.Mkdirat(root, "new", 0o755), "read-only")
		if kind == "squashfs" {
			assert.Len(t, imagefiletest.LoopDevices(t, path), len(before)+1)
		}
		require.NoError(t, unix.Close(root))
		assert.Eventually(t, func() bool { return len(imagefiletest.LoopDevices(t, path)) == len(before) }, time.Minute, 10*time.Millisecond)
	}
}

// TestEROFSOverLoop mounts EROFS as kernels before 6.12 require.
func TestEROFSOverLoop(t *testing.T) {
	imagefiletest.Need(t)
	nstest.NoLeaks(t)
	path := imagefiletest.Make(t, "erofs", imagefiletest.Tree(t))
	i, err := Open(path, nil)
	require.NoError(t, err)
	defer i.Close()
	root, err := i.mountOverLoop()
	require.NoError(t, err)
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d/etc/hostname", root))
	assert.NoError(t, err)
	assert.Equal(t, "image\n", string(text))
	assert.Len(t, imagefiletest.LoopDevices(t, path), 1)
	require.NoError(t, unix.Close(root))
	assert.Eventually(t, func() bool { return len(imagefiletest.LoopDevices(t, path)) == 0 }, time.Minute, 10*time.Millisecond)
}

// TestLoopDevicesAreTakenByMany: each of several processes at once gets a device of its own.
func TestLoopDevicesAreTakenByMany(t *testing.T) {
	imagefiletest.Need(t)
	nstest.NoLeaks(t)
	path := imagefiletest.Make(t, "squashfs", imagefiletest.Tree(t))
	var all sync.WaitGroup
	roots := make([]int, 24)
	for n := range roots {
		all.Go(func() {
			i, err := Open(path, nil)
			if assert.NoError(t, err) {
				defer i.Close()
				roots[n], err = i.Mount()
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	assert.Len(t, imagefiletest.LoopDevices(t, path), len(roots))
	for _, root := range roots {
		unix.Close(root)
	}
	assert.Eventually(t, func() bool { return len(imagefiletest.LoopDevices(t, path)) == 0 }, time.Minute, 10*time.Millisecond)
}

func TestOpenRefuses(t *testing.T) {
	nstest.NeedRoot(t)
	nstest.NoLeaks(t)
	const alice = 5001
	for name, test := range map[string]struct {
		change func(dir, path string) error
		want   string // DIR stands for the directory
	}{
		"the owner": {func(_, path string) error { return os.Chown(path, alice, 0) },
			"DIR/jail.squashfs: belongs to uid 5001, a user, and not to root; the user may have it open; replace it by a copy: " +
				"cp DIR/jail.squashfs DIR/jail.squashfs.new && mv -f DIR/jail.squashfs.new DIR/jail.squashfs"},
		"others write": {func(_, path string) error { return os.Chmod(path, 0o666) },
			"DIR/jail.squashfs: is writable by others (mode 0666); run: chmod go-w DIR/jail.squashfs"},
		"a hard link to a user's file": {func(dir, path string) error {
			os.Remove(path)
			if err := os.WriteFile(dir+"/theirs", squashfsHead(96), 0o644); err != nil {
				return err
			}
			if err := os.Chown(dir+"/theirs", alice, alice); err != nil {
				return err
			}
			return os.Link(dir+"/theirs", path)
		}, "DIR/jail.squashfs: belongs to uid 5001, a user, and not to root; the user may have it open; replace it by a copy: " +
			"cp DIR/jail.squashfs DIR/jail.squashfs.new && mv -f DIR/jail.squashfs.new DIR/jail.squashfs"},
		"the directory": {func(dir, _ string) error { return os.Chmod(dir, 0o777) },
			"DIR: is writable by others (mode 0777); run: chmod go-w DIR"},
		"a user's link in a sticky directory": {func(dir, path string) error {
			if err := os.Rename(path, dir+"/v1"); err != nil {
				return err
			}
			if err := os.Symlink("v1", path); err != nil {
				return err
			}
			if err := os.Lchown(path, alice, alice); err != nil {
				return err
			}
			return os.Chmod(dir, 0o777|os.ModeSticky)
		}, "DIR/jail.squashfs: is a symbolic link of uid 5001, a user, and not of root; write a path that leads through no user's link or directory"},
		"a link into a user's directory": {func(dir, path string) error {
			if err := os.Mkdir(dir+"/home", 0o755); err != nil {
				return err
			}
			if err := os.Rename(path, dir+"/home/v1"); err != nil {
				return err
			}
			if err := os.Chown(dir+"/home", alice, 0); err != nil {
				return err
			}
			return os.Symlink("home/v1", path)
		}, "DIR/home: belongs to uid 5001, a user, and not to root; do not take it from the user; choose a path whose directories all belong to root"},
		"a pipe": {func(_, path string) error { os.Remove(path); return unix.Mkfifo(path, 0o644) },
			"DIR/jail.squashfs: not a regular file"},
		"a link in a circle": {func(_, path string) error { os.Remove(path); return os.Symlink("jail.squashfs", path) },
			"DIR/jail.squashfs: too many symbolic links"},
		"missing": {func(_, path string) error { return os.Remove(path) },
			"DIR/jail.squashfs: cannot open DIR/jail.squashfs: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "jail.squashfs")
			require.NoError(t, os.WriteFile(path, squashfsHead(96), 0o644))
			require.NoError(t, test.change(dir, path))
			_, err := Open(path, nil)
			assert.EqualError(t, err, "jail root "+path+" cannot be trusted: "+strings.ReplaceAll(test.want, "DIR", dir))
		})
	}
}

func TestOpenRefusesWhatRootOfAJailMayWrite(t *testing.T) {
	nstest.NeedRoot(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(dir+"/jail", 0o755))
	path := filepath.Join(dir, "jail/other.squashfs")
	require.NoError(t, os.WriteFile(path, squashfsHead(96), 0o644))
	require.NoError(t, os.Symlink("jail", dir+"/link"))
	_, err := Open(path, []string{dir + "/missing", dir + "/link"})
	assert.EqualError(t, err, "jail root "+path+" cannot be trusted: lies in "+dir+`/link, the root of a jail with jail_root = ["range"], whose users can write it; move it elsewhere`)
}

// TestOpenFollowsLinksOfRoot: a store switches a link, by a relative or an absolute path.
func TestOpenFollowsLinksOfRoot(t *testing.T) {
	nstest.NeedRoot(t)
	nstest.NoLeaks(t)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/store/v1", 0o755))
	require.NoError(t, os.WriteFile(dir+"/store/v1/image", append(squashfsHead(96), make([]byte, 512)...), 0o644))
	require.NoError(t, os.Symlink("../store/v1", dir+"/store/now"))
	require.NoError(t, os.Symlink(dir+"/store/now/./image", dir+"/jail"))
	i, err := Open(dir+"/jail", nil)
	require.NoError(t, err)
	assert.Equal(t, kindSquashfs, i.kind)
	assert.NoError(t, i.Close())
}

// TestMountDamaged: the kernel finds damage that the superblock does not show, and its error is one line.
func TestMountDamaged(t *testing.T) {
	imagefiletest.Need(t)
	nstest.NoLeaks(t)
	path := imagefiletest.Make(t, "squashfs", imagefiletest.Tree(t))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 8), 64) // the table of inodes
	require.NoError(t, err)
	require.NoError(t, f.Close())
	i, err := Open(path, nil)
	require.NoError(t, err)
	defer i.Close()
	_, err = i.Mount()
	require.Error(t, err)
	assert.Contains(t, err.Error(), "cannot mount jail root "+path+": squashfs: ")
	assert.NotContains(t, err.Error(), "\n")
	assert.Eventually(t, func() bool { return len(imagefiletest.LoopDevices(t, path)) == 0 }, time.Minute, 10*time.Millisecond)
}

// TestMountIsOfWhatWasChecked: a file that takes the name between check and mount is not mounted.
func TestMountIsOfWhatWasChecked(t *testing.T) {
	imagefiletest.Need(t)
	nstest.NoLeaks(t)
	for _, kind := range []string{"squashfs", "erofs"} {
		path := imagefiletest.Make(t, kind, imagefiletest.Tree(t))
		i, err := Open(path, nil)
		require.NoError(t, err)
		require.NoError(t, os.Rename(path, path+".checked"))
		require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o666))
		root, err := i.Mount()
		require.NoError(t, err)
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d/etc/hostname", root))
		assert.NoError(t, err)
		assert.Equal(t, "image\n", string(text))
		require.NoError(t, unix.Close(root))
		require.NoError(t, i.Close())
	}
}
