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

func TestTheChildThatDidTheChecksWrites(t *testing.T) {
	r := runner(t, in("a", "fine"))
	r.Run(context.Background())
	path, text := filepath.Join(r.Locks, "file"), []byte(strings.Repeat("x", 200<<10)) // more than a pipe takes
	for range 2 {
		require.NoError(t, r.NewWriter("file")(context.Background(), path, text))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, text, got)
	}
	assert.NoFileExists(t, r.slotPath(1))
	by, err := os.ReadFile(r.slotPath(0))
	require.NoError(t, err)
	assert.Equal(t, "fine", strings.TrimSpace(string(by)), "a thread that the check has left is the check's")

	assert.EqualError(t, r.NewWriter("file")(context.Background(), r.Locks, text), "open "+r.Locks+": is a directory")
	assert.ErrorContains(t, r.NewWriter("gone")(context.Background(), path, text), "exit status 7")
	require.NoError(t, r.NewWriter("file")(context.Background(), path, []byte("after that")), "by another one")
	r.Close()
	lock, err := takeLockUntil(r.slotPath(0), time.Now().Add(time.Minute))
	require.NoError(t, err, "its process has ended")
	lock.Close()
}

// Opening a FIFO without a reader blocks like a hung disk.
func TestWhatIsWrittenToADiskThatHangs(t *testing.T) {
	r := runner(t)
	r.Run(context.Background())
	pipe := filepath.Join(r.Locks, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), short)
	defer cancel()
	assert.EqualError(t, r.NewWriter("file")(ctx, pipe, nil), "the disk does not answer in time")
	by, err := os.ReadFile(r.slotPath(0))
	require.NoError(t, err)
	assert.Equal(t, "file", strings.TrimSpace(string(by)))

	// A stuck child would not be joined by a second one.
	lock, err := takeLockUntil(r.slotPath(0), time.Now().Add(time.Minute))
	require.NoError(t, err)
	defer lock.Close()
	r = &Runner{Locks: r.Locks, Self: []string{"/bin/false"}}
	r.Run(context.Background())
	assert.ErrorContains(t, r.NewWriter("file")(context.Background(), pipe, nil), "a process of an earlier run (file) is stuck")
}
