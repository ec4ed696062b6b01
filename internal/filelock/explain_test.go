// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestLockErrors(t *testing.T) {
	for err, want := range map[error]string{
		unix.EWOULDBLOCK: "cannot lock /s/lock: another process held the lock until the deadline",
		unix.EIO:         "cannot lock /s/lock: input/output error",
		unix.ENOSYS:      "cannot lock /s/lock: function not implemented; use a directory on the node itself, for example in /run, or mount Lustre with -o flock",
		unix.ENOLCK:      "cannot lock /s/lock: no locks available; use a directory on the node itself, for example in /run, or mount Lustre with -o flock",
	} {
		assert.EqualError(t, Explain("/s/lock", err), want)
	}
}

// TestLockNamesTheHolder has flock(1) hold the lock.
func TestLockNamesTheHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder := exec.Command("flock", "--no-fork", path, "sh", "-c", "echo locked; exec cat")
	stdin, err := holder.StdinPipe()
	require.NoError(t, err)
	stdout, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	defer func() {
		stdin.Close()
		assert.NoError(t, holder.Wait())
	}()
	_, err = stdout.Read(make([]byte, 16))
	require.NoError(t, err)
	_, err = Lock(path, time.Now())
	assert.Regexp(t, fmt.Sprintf(`^cannot lock %s: process %d \((sh|cat)\) held the lock until the deadline$`, path, holder.Process.Pid), err)
}

func TestFindHolder(t *testing.T) {
	locks := `1: POSIX  ADVISORY  WRITE 20936 00:4a:12 0 EOF
2: FLOCK  ADVISORY  WRITE 77 00:4a:12 0 EOF
2: -> FLOCK  ADVISORY  WRITE 78 00:4a:12 0 EOF
3: FLOCK  ADVISORY  WRITE -1 00:4a:13 0 EOF
garbled
`
	for file, want := range map[string]int{"00:4a:12": 77, "00:4a:13": 0, "00:4a:1": 0} {
		assert.Equal(t, want, findHolder(strings.NewReader(locks), file), file)
	}
}

// TestHolderUnknown: nobody holds the lock, so /proc/locks does not have it.
func TestHolderUnknown(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	require.NoError(t, err)
	defer file.Close()
	assert.Equal(t, "another process", describeHolder(file))
}
