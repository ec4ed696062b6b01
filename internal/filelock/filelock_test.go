// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	require.NoError(t, err)
	info, err := first.Stat()
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	_, err = Try(path)
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, first.Close())
	second, err := Try(path)
	require.NoError(t, err)
	second.Close()
}

func TestNoSymbolicLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	require.NoError(t, os.Symlink("elsewhere", path))
	_, err := Try(path)
	require.ErrorIs(t, err, unix.ELOOP)
}

func TestWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = Wait(ctx, path)
	require.ErrorIs(t, err, ErrBusy)
	time.AfterFunc(10*time.Millisecond, func() { first.Close() })
	second, err := Wait(t.Context(), path)
	require.NoError(t, err)
	defer second.Close()

	ended, end := context.WithCancel(t.Context())
	end()
	other, err := Wait(ended, path+"2")
	require.NoError(t, err, "one try")
	other.Close()
}

func TestWaitByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var files [3]*os.File
	for i := range files {
		var err error
		files[i], err = Open(path)
		require.NoError(t, err)
		defer files[i].Close()
	}
	const far = 1 << 61
	require.NoError(t, WaitByte(t.Context(), files[0], far))
	require.NoError(t, WaitByte(t.Context(), files[1], far+1), "another byte")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, WaitByte(ctx, files[2], far), ErrBusy)
	files[0].Close()
	require.NoError(t, WaitByte(t.Context(), files[2], far))
}

func TestADirectory(t *testing.T) {
	path := t.TempDir()
	var dirs [2]*os.File
	for i := range dirs {
		var err error
		dirs[i], err = os.Open(path)
		require.NoError(t, err)
		defer dirs[i].Close()
	}
	require.NoError(t, TryFile(dirs[0]))
	require.ErrorIs(t, TryFile(dirs[1]), ErrBusy)
}

func TestAFileThatCannotBeLocked(t *testing.T) {
	fd, err := unix.Open(t.TempDir(), unix.O_PATH, 0)
	require.NoError(t, err)
	file := os.NewFile(uintptr(fd), "dir")
	defer file.Close()
	assert.EqualError(t, TryFile(file), "cannot lock dir: bad file descriptor")
}
