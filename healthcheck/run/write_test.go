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
		require.NoError(t, r.Writer("file")(context.Background(), path, text))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, text, got)
	}
	assert.NoFileExists(t, r.slot(1))
	by, err := os.ReadFile(r.slot(0))
	require.NoError(t, err)
	assert.Equal(t, "fine", strings.TrimSpace(string(by)), "a thread that the check has left is the check's")

	assert.EqualError(t, r.Writer("file")(context.Background(), r.Locks, text), "open "+r.Locks+": is a directory")
	assert.ErrorContains(t, r.Writer("gone")(context.Background(), path, text), "exit status 7")
	require.NoError(t, r.Writer("file")(context.Background(), path, []byte("after that")), "by another one")
	r.Close()
	lock, err := takeUntil(r.slot(0), time.Now().Add(time.Minute))
	require.NoError(t, err, "its process has ended")
	lock.Close()
}

// Whoever opens a pipe that nobody reads waits as for a disk that hangs.
func TestWhatIsWrittenToADiskThatHangs(t *testing.T) {
	r := runner(t)
	r.Run(context.Background())
	pipe := filepath.Join(r.Locks, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), short)
	defer cancel()
	assert.EqualError(t, r.Writer("file")(ctx, pipe, nil), "the disk does not answer in time")
	by, err := os.ReadFile(r.slot(0))
	require.NoError(t, err)
	assert.Equal(t, "file", strings.TrimSpace(string(by)))

	// Had it been stuck, it would not be joined.
	lock, err := takeUntil(r.slot(0), time.Now().Add(time.Minute))
	require.NoError(t, err)
	defer lock.Close()
	r = &Runner{Locks: r.Locks, Self: []string{"/bin/false"}}
	r.Run(context.Background())
	assert.ErrorContains(t, r.Writer("file")(context.Background(), pipe, nil), "a process of an earlier run (file) is stuck")
}
