// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func writeFile(path string, text []byte) error { return os.WriteFile(path, text, 0o600) }

func TestAWriterWrites(t *testing.T) {
	dir := t.TempDir()
	path, text := filepath.Join(dir, "file"), []byte(strings.Repeat("x", 200<<10))
	write := NewWriter(dir, "record", writeFile)
	for range 2 {
		require.NoError(t, write(context.Background(), path, text))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, text, got)
	}
	assert.EqualError(t, write(context.Background(), dir, text), "open "+dir+": is a directory")
	require.NoError(t, write(context.Background(), path, []byte("after that")), "the lock is free")
}

// Opening a FIFO without a reader blocks like a hung disk.
func TestWhatIsWrittenToADiskThatHangs(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), short)
	defer cancel()
	write := NewWriter(dir, "record", writeFile)
	assert.EqualError(t, write(ctx, pipe, nil), "the disk does not answer in time")
	assert.ErrorContains(t, write(context.Background(), pipe, nil), "a process of an earlier run (record) is stuck", "no second one joins it")
	require.NoError(t, NewWriter(dir, "metrics", writeFile)(context.Background(), filepath.Join(dir, "file"), nil), "of another kind")

	end, err := os.OpenFile(pipe, os.O_RDONLY, 0) // the disk answers again
	require.NoError(t, err)
	defer end.Close()
	lock, err := takeLockUntil(filepath.Join(dir, "record.lock"), time.Now().Add(time.Minute))
	require.NoError(t, err)
	lock.Close()
}
