// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
)

func TestDaemons(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	expect(t, once(h, daemons, s), check.NotApplicable, "")
	s.Daemons.Processes = []string{"sssd", "a-name-longer-than-the-kernel-keeps"}
	expect(t, once(h, daemons, s), check.Unknown, "")
	stat(t, h, "5", "sssd", "S", 0)
	stat(t, h, "6", "a-name-longer-t", "S", 101)
	expect(t, once(h, daemons, s), check.OK, "")
	stat(t, h, "5", "sssd", "Z", 0)
	expect(t, once(h, daemons, s), check.Fail, "sssd is not running")
	stat(t, h, "5", "sssd", "S", 1000)
	expect(t, once(h, daemons, s), check.Fail, "sssd is not running")
}

// A fake munged sends answers that a real one does not send.
func fakeMunge(t *testing.T, answer []byte) string {
	path := filepath.Join(t.TempDir(), "m")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if answer != nil {
				c.Read(make([]byte, 64))
				c.Write(answer)
				c.Close()
			}
		}
	}()
	return path
}

func TestMunge(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	s.Daemons.Munge = fakeMunge(t, []byte{0, 0x60, 0x6d, 0x4b, 4, 3, 0, 0, 0, 0, 9, 0, 0})
	expect(t, once(h, munge, s), check.OK, "")
	s.Daemons.Munge = fakeMunge(t, []byte{0, 0x60, 0x6d, 0x4b, 4, 3, 0, 0, 0, 0, 9, 5, 0})
	expect(t, once(h, munge, s), check.Fail, "munged refuses to create a credential (code 5)")
	s.Daemons.Munge = fakeMunge(t, []byte("HTTP/1.1 400 no\r\n"))
	expect(t, once(h, munge, s), check.Fail, "cannot parse munged's answer")
	s.Daemons.Munge = filepath.Join(t.TempDir(), "none")
	expect(t, once(h, munge, s), check.Fail, "munged is not running")
	ctx, cancel := context.WithDeadline(context.Background(), time.Now())
	defer cancel()
	s.Daemons.Munge = fakeMunge(t, nil)
	expect(t, munge(ctx, h, s), check.Unknown, "munged does not answer")
	s.Daemons.Munge = "none"
	expect(t, once(h, munge, s), check.NotApplicable, "")
	s.Daemons.Munge = ""
	expect(t, once(h, munge, s), check.NotApplicable, "")
	put(t, h.Roots.Etc+"/munge/munge.key", "")
	expect(t, once(h, munge, s), check.Fail, "munged is not running")
}

// The request to a busy munged is repeated.
func TestMungeWithAFullQueue(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	path := filepath.Join(t.TempDir(), "m")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	require.NoError(t, unix.Listen(fd, 0))
	file := os.NewFile(uintptr(fd), path)
	listener, err := net.FileListener(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	defer listener.Close()
	for err == nil { // until nobody else is let in
		_, err = net.Dial("unix", path)
	}
	require.ErrorIs(t, err, unix.EAGAIN)

	s.Daemons.Munge = path
	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	expect(t, munge(short, h, s), check.Unknown, "munged does not answer")
	go func() {
		time.Sleep(100 * time.Millisecond) // the check finds the socket full at first
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				c.Read(make([]byte, 64))
				c.Write([]byte{0, 0x60, 0x6d, 0x4b, 4, 3, 0, 0, 0, 0, 9, 0, 0})
			}()
		}
	}()
	expect(t, once(h, munge, s), check.OK, "munged creates credentials")
}

func TestMungeOfTheMachine(t *testing.T) {
	path, err := exec.LookPath("munged")
	if err != nil {
		t.Skip("munged is not installed")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.WriteFile(dir+"/key", make([]byte, 64), 0o400))
	cmd := exec.Command(path, "--foreground", "--force", "--key-file="+dir+"/key", "--socket="+dir+"/s", "--pid-file="+dir+"/pid",
		"--log-file="+dir+"/log", "--seed-file="+dir+"/seed", "--num-threads=1")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	s := config.DefaultSettings()
	s.Daemons.Munge = dir + "/s"
	require.Eventually(t, func() bool {
		return once(testHost(t), munge, s).Verdict == check.OK
	}, time.Minute, 50*time.Millisecond)
	assert.False(t, errors.Is(cmd.Process.Signal(unix.Signal(0)), os.ErrProcessDone))
}
