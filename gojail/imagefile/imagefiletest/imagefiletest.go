// SPDX-License-Identifier: Apache-2.0

// Package imagefiletest makes image files for tests, with mksquashfs and mkfs.erofs.
package imagefiletest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

// Need skips the test where images cannot be made or mounted.
func Need(t *testing.T) {
	t.Helper()
	nstest.NeedRoot(t)
	for program, kind := range map[string]string{"mksquashfs": "squashfs", "mkfs.erofs": "erofs"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program + ", which make deps installs")
		}
		context, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
		if err != nil {
			t.Skip("needs the kernel's " + kind)
		}
		unix.Close(context)
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("needs loop devices")
	}
}

// Tree returns a tree that is small, and has what a jail's root has.
func Tree(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "tree")
	for _, dir := range []string{"proc", "sys", "dev", "run", "tmp", "etc", "home", "var/tmp"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	nstest.WriteFile(t, filepath.Join(root, "etc/hostname"), "image\n")
	return root
}

// Make makes an image of a tree, "squashfs" or "erofs", and returns its path.
func Make(t *testing.T, kind, tree string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jail."+kind)
	command := []string{"mksquashfs", tree, path, "-quiet", "-no-progress"}
	if kind == "erofs" {
		command = []string{"mkfs.erofs", path, tree}
	}
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	require.NoError(t, err, "%s (make deps installs it): %s", command[0], out)
	return path
}

// LoopDevices returns the loop devices that a file is attached to.
func LoopDevices(t *testing.T, path string) []string {
	t.Helper()
	files, err := filepath.Glob("/sys/block/loop*/loop") // a device without a file lacks it
	require.NoError(t, err)
	var st unix.Stat_t
	require.NoError(t, unix.Stat(path, &st))
	var list []string
	for _, file := range files {
		device := filepath.Join("/dev", filepath.Base(filepath.Dir(file)))
		fd, err := unix.Open(device, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		info, err := unix.IoctlLoopGetStatus64(fd)
		unix.Close(fd)
		if err == nil && info.Device == uint64(st.Dev) && info.Inode == st.Ino {
			list = append(list, device)
		}
	}
	return list
}
