// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/nstest"
)

// TestCopyStaysInTheVersion: a user exchanges directories of a version with links to a directory of root's while it is copied.
func TestCopyStaysInTheVersion(t *testing.T) {
	nstest.NeedRoot(t)
	nstest.NoLeaks(t)
	dir := t.TempDir()
	secrets, version := filepath.Join(dir, "secrets"), filepath.Join(dir, "version")
	require.NoError(t, os.MkdirAll(secrets, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(secrets, "secret"), nil, 0o600))
	const places = 150
	for n := range places {
		require.NoError(t, os.MkdirAll(filepath.Join(version, fmt.Sprint("d", n)), 0o755))
		require.NoError(t, os.Symlink(secrets, filepath.Join(version, fmt.Sprint("l", n))))
	}
	whole := filepath.Join(dir, "whole")
	require.NoError(t, copyVersion(context.Background(), version, store.FormatDir, whole))
	target, err := os.Readlink(filepath.Join(whole, "l0"))
	require.NoError(t, err, "links are copied as links")
	assert.Equal(t, secrets, target)

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n = (n + 1) % places {
			select {
			case <-stop:
				return
			default:
			}
			unix.Renameat2(unix.AT_FDCWD, filepath.Join(version, fmt.Sprint("d", n)), unix.AT_FDCWD, filepath.Join(version, fmt.Sprint("l", n)), unix.RENAME_EXCHANGE)
		}
	}()
	defer func() { close(stop); <-stopped }()
	for n := range 2 {
		to := filepath.Join(dir, fmt.Sprint("copy", n))
		if err := copyVersion(context.Background(), version, store.FormatDir, to); err != nil {
			require.ErrorContains(t, err, "cannot copy the version: cp: ")
		}
		require.NoError(t, filepath.WalkDir(to, func(path string, _ fs.DirEntry, err error) error {
			require.NoError(t, err)
			require.NotEqual(t, "secret", filepath.Base(path), "%s is from outside the version", path)
			return nil
		}))
	}
}
