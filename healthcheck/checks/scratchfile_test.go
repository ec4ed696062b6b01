// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

// listNames returns the names in a directory.
func listNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestScratchFileOfAKilledRun: on a file system without O_TMPFILE, such as NFS, the file of a killed run is removed later, and
// no other one is.
func TestScratchFileOfAKilledRun(t *testing.T) {
	dir := t.TempDir()
	const fixed = ".gojail-healthcheck-n1"
	create := func() (name string, remove func()) {
		t.Helper()
		f, remove, err := createScratchFile(dir, "n1")
		require.NoError(t, err)
		require.NoError(t, writeDirect(f))
		require.NoError(t, f.Close())
		return filepath.Base(f.Name()), remove
	}
	name, _ := create() // and it is killed
	assert.Equal(t, fixed, name)

	second, remove := create()
	assert.NotEqual(t, fixed, second, "it may be that of a run which hangs")
	assert.Contains(t, second, fixed+"-")
	remove()
	assert.Equal(t, []string{fixed}, listNames(t, dir))

	past := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, fixed), past, past))
	_, remove = create()
	remove()
	assert.Empty(t, listNames(t, dir))
	name, remove = create()
	assert.Equal(t, fixed, name)
	remove()
	assert.Empty(t, listNames(t, dir))
}

// TestScratchFileOfOthers: what is not a file of this check's stays, and keeps no node from being checked.
func TestScratchFileOfOthers(t *testing.T) {
	nstest.NeedRoot(t)
	past := time.Now().Add(-2 * time.Hour)
	for name, put := range map[string]func(path string) error{
		"a file of a user": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("mine"), 0o600), os.Chown(path, 1000, 1000), os.Chtimes(path, past, past))
		},
		"a symbolic link": func(path string) error { return os.Symlink("/etc/passwd", path) },
		"a directory":     func(path string) error { return errors.Join(os.Mkdir(path, 0o755), os.Chtimes(path, past, past)) },
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, ".gojail-healthcheck-n1")
		require.NoError(t, put(path), name)
		before, err := os.Lstat(path)
		require.NoError(t, err)
		f, remove, err := createScratchFile(dir, "n1")
		require.NoError(t, err, name)
		assert.NotEqual(t, path, f.Name(), name)
		f.Close()
		remove()
		after, err := os.Lstat(path)
		require.NoError(t, err, name)
		assert.Equal(t, before, after, name)
		assert.Len(t, listNames(t, dir), 1, name)
	}
}
