// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/procfs"
)

// TestTracerKeepsNobodyWaiting: process 1 of a PID namespace does not end before a tracer outside has
// reaped what it traces in there. What it held it has let go of by then.
func TestTracerKeepsNobodyWaiting(t *testing.T) {
	nstest.NeedRoot(t)
	r := tracedHolder(t)
	assert.NoError(t, r.Kill(100*time.Millisecond))
	assert.DirExists(t, fmt.Sprintf("/proc/%d", r.PID), "it has not ended")
}

// TestHoldersEndTogether: the end of a job waits once, however many of its holders do not end.
func TestHoldersEndTogether(t *testing.T) {
	nstest.NeedRoot(t)
	const holders, limit = 20, 3 * time.Second
	var records []state.Record
	for range holders {
		records = append(records, tracedHolder(t))
	}
	begin := time.Now()
	assert.NoError(t, killAll(records, begin.Add(limit)))
	assert.Less(t, time.Since(begin), holders*limit) // a minute
}

// tracedHolder starts a process that does not end when it is killed, until the test has ended.
func tracedHolder(t *testing.T) state.Record {
	t.Helper()
	holder := exec.Command("sh", "-c", "sleep 1000 & wait")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	require.NoError(t, holder.Start())
	pid := holder.Process.Pid
	child := 0
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
		_, err := fmt.Sscan(string(text), &child)
		return err == nil
	}, time.Minute, time.Millisecond)

	traced, reap, done := make(chan error), make(chan bool), make(chan bool)
	go func() { // a tracer is a thread
		runtime.LockOSThread()
		_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(child), 0, 0, 0, 0)
		traced <- errnoOrNil(errno)
		<-reap
		var status unix.WaitStatus
		unix.Wait4(child, &status, unix.WALL, nil)
		close(done)
	}()
	t.Cleanup(func() {
		holder.Process.Kill()
		close(reap)
		<-done
		holder.Wait()
	})
	require.NoError(t, <-traced)
	start, err := procfs.StartTime(pid)
	require.NoError(t, err)
	return state.Record{Name: "small", PID: pid, Start: start}
}

func errnoOrNil(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
