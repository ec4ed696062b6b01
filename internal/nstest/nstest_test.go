// SPDX-License-Identifier: Apache-2.0

package nstest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestWaitUntilClosed: a lock counts that is held by a file of which /proc shows no descriptor any more, here because it is mapped into memory.
func TestWaitUntilClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	WriteFile(t, path, "x")
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Flock(fd, unix.LOCK_EX))
	memory, err := unix.Mmap(fd, 0, 1, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))
	closed := make(chan bool)
	go func() {
		WaitUntilClosed(t, filepath.Join(filepath.Dir(path), "*"))
		close(closed)
	}()
	select {
	case <-closed:
		assert.Fail(t, "it did not wait for the lock")
	case <-time.After(500 * time.Millisecond): // it waits
	}
	require.NoError(t, unix.Munmap(memory))
	<-closed
}
