// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

// rootsDir returns a directory that only root can write to, all the way up.
func rootsDir(t *testing.T) string {
	t.Helper()
	nstest.NeedRoot(t)
	dir, err := os.MkdirTemp("/run", "gojail-metrics-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(rootsDir(t), "gojail-n1.prom")
	nstest.WriteFile(t, path, "gojail_of_an_older_version 1\n")
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, WriteFile(path, []byte("new 1\n")))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "new 1\n", string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), info.Mode().Perm(), "node_exporter is not root")
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing is left beside it")

	assert.EqualError(t, WriteFile("/run/x", nil), "cannot write the metrics: /run/x does not end in .prom, so node_exporter would not read it")
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o777))
	assert.ErrorContains(t, WriteFile(path, nil), "cannot write the metrics "+path+": ")
	assert.FileExists(t, path)
}

// A full disk costs the metrics, and after a minute also the file that is out of date.
func TestWriteFileOnAFullDisk(t *testing.T) {
	dir := rootsDir(t)
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=755"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	path := filepath.Join(dir, "gojail.prom")
	require.NoError(t, WriteFile(path, []byte("old 1\n")))
	big := bytes.Repeat([]byte("x"), 128<<10)
	assert.EqualError(t, WriteFile(path, big), "cannot write the metrics "+path+": no space left on device")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "old 1\n", string(text), "whole, or not at all")
	assert.Equal(t, unix.ENOSPC, RemoveStale(path, unix.ENOSPC), "it is of this minute")
	assert.FileExists(t, path)
	assert.NoFileExists(t, path+".new")

	old := time.Now().Add(-2 * time.Minute)
	require.NoError(t, os.Chtimes(path, old, old))
	err = RemoveStale(path, WriteFile(path, big))
	assert.EqualError(t, err, "cannot write the metrics "+path+": no space left on device; the file "+path+", which was out of date, is removed")
	assert.NoFileExists(t, path)
	require.NoError(t, WriteFile(path, []byte("new 1\n")), "space again")
}

func TestIsStale(t *testing.T) {
	now := time.Unix(1000, 0)
	assert.False(t, isStale(now.Add(-59*time.Second), now))
	assert.True(t, isStale(now.Add(-time.Minute), now))
	assert.True(t, isStale(now.Add(time.Hour), now), "the clock was set back")
}
