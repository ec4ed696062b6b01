// SPDX-License-Identifier: Apache-2.0

package state

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/nstest"
)

// TestProbeStorageOfAStuckZygote: a zygote that reads nothing is named, and what becomes of it.
func TestProbeStorageOfAStuckZygote(t *testing.T) {
	nstest.NeedRoot(t)
	s, err := OpenState(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(s.JailDir("debian"), 0o700))
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Join(s.JailDir("debian"), contract.StorageSocket)}))
	require.NoError(t, unix.Listen(fd, 1))

	_, _, err = s.ProbeStorage("debian", 0)
	assert.ErrorContains(t, err, "its zygote does not answer; the next step")
}

// TestProbeOfAFullQueue: no zygote with a full queue makes its caller hang (unix(7): connect
// waits).
func TestProbeOfAFullQueue(t *testing.T) {
	nstest.NeedRoot(t)
	s, err := OpenState(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(s.JailDir("debian"), 0o700))
	for name, probe := range map[string]func() error{
		contract.StorageSocket: func() error { _, _, err := s.ProbeStorage("debian", 0); return err },
		contract.ZygoteSocket:  func() error { return s.ProbeZygote("debian", 100*time.Millisecond) },
	} {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		t.Cleanup(func() { unix.Close(fd) })
		address := &unix.SockaddrUnix{Name: filepath.Join(s.JailDir("debian"), name)}
		require.NoError(t, unix.Bind(fd, address))
		require.NoError(t, unix.Listen(fd, 0))
		for err = nil; err == nil; {
			caller, e := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			require.NoError(t, e)
			t.Cleanup(func() { unix.Close(caller) })
			err = unix.Connect(caller, address)
		}
		require.ErrorIs(t, err, unix.EAGAIN)
		assert.ErrorIs(t, probe(), ErrStuck, name)
	}
}
