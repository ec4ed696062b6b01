// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/oneline"
)

func TestReadFile(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: only root's files are read")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for name, test := range map[string]struct {
		change func() error
		want   string // "" is no error
	}{
		"as it should be": {func() error { return nil }, ""},
		"sticky":          {func() error { return os.Chmod(dir, 0o777|os.ModeSticky) }, ""},
		"own link":        {func() error { return relink(path, path+".d/file") }, ""},
		"a user's link": {func() error {
			if err := relink(path, path+".d/file"); err != nil {
				return err
			}
			return oneline.Both(os.Chmod(dir, 0o777|os.ModeSticky), os.Lchown(path, 65534, 0))
		}, path + ": is a symbolic link of uid 65534 and not of root; run: chown -h root:root " + path},
		"a person's link": {func() error {
			if err := relink(path, path+".d/file"); err != nil {
				return err
			}
			return oneline.Both(os.Chmod(dir, 0o777|os.ModeSticky), os.Lchown(path, 5001, 0))
		}, path + ": is a symbolic link of uid 5001, a user, and not of root; write a path that leads through no user's link or directory"},
		"a person's file": {func() error { return os.Chown(path, 1000, 0) }, path + ": belongs to uid 1000, a user, and not to root; the user may have it open; " +
			"replace it by a copy: cp " + path + " " + path + ".new && mv -f " + path + ".new " + path},
		"a person's directory": {func() error { return os.Chown(dir, 5001, 0) }, dir + ": belongs to uid 5001, a user, and not to root; " +
			"do not take it from the user; choose a path whose directories all belong to root"},
		"a service's file": {func() error { return os.Chown(path, 999, 0) }, path + ": belongs to uid 999 and not to root; run: chown root:root " + path},
		"group writes":     {func() error { return os.Chmod(path, 0o664) }, path + ": is writable by others (mode 0664); run: chmod go-w " + path},
		"owner":            {func() error { return os.Chown(path, 65534, 0) }, path + ": belongs to uid 65534 and not to root; run: chown root:root " + path},
		"open directory":   {func() error { return os.Chmod(dir, 0o777) }, dir + ": is writable by others (mode 0777); run: chmod go-w " + dir},
		"directory":        {func() error { os.Remove(path); return os.Mkdir(path, 0o755) }, path + ": not a regular file"},
		"pipe":             {func() error { os.Remove(path); return unix.Mkfifo(path, 0o644) }, path + ": not a regular file"},
		"missing":          {func() error { return os.Remove(path) }, path + ": cannot read the secret: no such file or directory"},
		"large":            {func() error { return os.Truncate(path, sizeMax+1) }, path + ": the secret is larger than 1048576 bytes"},
		"link in a circle": {func() error { os.Remove(path); return os.Symlink("file", path) }, path + ": too many symbolic links"},
		"link through an open directory": {func() error {
			if err := relink(path, path+".d/file"); err != nil {
				return err
			}
			return os.Chmod(path+".d", 0o777)
		}, path + ".d: is writable by others (mode 0777); run: chmod go-w " + path + ".d"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, os.RemoveAll(path+".d"))
			require.NoError(t, os.WriteFile(path, []byte("text"), 0o644))
			require.NoError(t, oneline.Both(os.Chown(dir, 0, 0), os.Chmod(dir, 0o755)))
			require.NoError(t, test.change())
			text, id, err := ReadFile(path, "the secret")
			if test.want == "" {
				require.NoError(t, err)
				assert.Equal(t, "text", string(text))
				assert.EqualValues(t, 4, id.Size)
				assert.NotZero(t, id.Ino)
				assert.NotZero(t, id.MtimeSec)
				return
			}
			assert.EqualError(t, err, test.want)
			assert.Nil(t, text)
		})
	}
	_, _, err := ReadFile("file", "the secret")
	assert.EqualError(t, err, "file: the secret must be an absolute path")
}

// relink puts the file's text at target and a link to it in its place.
func relink(path, target string) error {
	if err := os.Mkdir(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := os.Rename(path, target); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// TestParentsOf: the owner's directories and links are as good as root's.
func TestParentsOf(t *testing.T) {
	nstest.NeedRoot(t)
	const owner = 65534
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	require.NoError(t, os.Mkdir(own, 0o755))
	require.NoError(t, os.Symlink("own", filepath.Join(dir, "link")))
	path := filepath.Join(dir, "link", "file")
	require.NoError(t, Parents(path))
	require.NoError(t, os.Chown(own, owner, owner))
	require.NoError(t, os.Lchown(filepath.Join(dir, "link"), owner, owner))
	require.NoError(t, ParentsOf(path, owner))
	require.Error(t, ParentsOf(path, owner-1))
	assert.ErrorContains(t, Parents(path), "/link: is a symbolic link of uid 65534 and not of root")
}
