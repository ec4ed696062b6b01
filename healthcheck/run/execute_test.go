// SPDX-License-Identifier: Apache-2.0

package run

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
)

// A program on a disk that hangs, and one whose interpreter is there, hold up their check
// only. A lease (fcntl(2)) keeps others from opening a file.
func TestAProgramThatCannotBeOpened(t *testing.T) {
	for _, held := range []string{"program", "interpreter"} {
		r := runner(t, in("a", "executes"), in("b", "fine"))
		r.Checks[0].Timeout, r.Checks[0].HangVerdict = short, check.Fail
		path := filepath.Join(r.Locks, held)
		require.NoError(t, os.WriteFile(filepath.Join(r.Locks, "program"), []byte("#!"+r.Locks+"/interpreter\n"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(r.Locks, "interpreter"), []byte("#!/bin/sh\n"), 0o700))
		fd, err := unix.Open(path, unix.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
		require.NoError(t, err, "a lease on a file of %s", r.Locks)
		began := time.Now()
		results := said(r.Run(t.Context()))
		took := time.Since(began)
		unix.Close(fd)
		assert.Equal(t, []string{"executes: fail: does not answer", "fine: ok: fine on n1"}, results)
		assert.Less(t, took, 10*time.Second) // a lease lasts 45
	}
}
