// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
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
	for _, script := range []bool{false, true} {
		r := again(t, runner(t, in("a", "fine"), in("b", "fine")))
		path := filepath.Join(r.Locks, "program")
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700))
		program := path
		if script {
			program += ".script"
			require.NoError(t, os.WriteFile(program, []byte("#! "+path+"\n"), 0o700))
		}
		fd, err := unix.Open(path, unix.O_WRONLY, 0)
		require.NoError(t, err)
		ended := make(chan struct{})
		r.Checks[0].Name, r.Checks[0].Timeout, r.Checks[0].Hang = "held", short, check.Fail
		all := *r.Inside
		all.Checks = append([]check.Check{{Name: "held", Run: func(ctx context.Context, h *check.Host) check.Finding {
			defer close(ended)
			_, err := h.Command(context.Background(), program)
			return check.Found(check.OK, "%v", err)
		}}}, all.Checks...)
		r.Inside = &all
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
		require.NoError(t, err, "a lease on a file of %s", r.Locks)
		before := runtime.GOMAXPROCS(1)
		began := time.Now()
		results := said(whole(t, r))
		took := time.Since(began)
		runtime.GOMAXPROCS(before)
		unix.Close(fd)
		<-ended
		assert.Equal(t, []string{"held: fail: does not answer", "fine: ok: fine on n1"}, results)
		assert.Less(t, took, 10*time.Second) // a lease lasts 45
	}
}
