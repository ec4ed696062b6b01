// SPDX-License-Identifier: Apache-2.0

// Package killtest kills a program before each of the system calls by which it
// changes files, for tests of what a crash leaves behind. It needs ptrace(2) and
// Linux 5.3 (PTRACE_GET_SYSCALL_INFO). Only tests use it.
package killtest

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// changing are the system calls that are counted; write and openat are counted in some cases only.
var changing = map[uint64]string{
	unix.SYS_MKDIRAT: "mkdirat", unix.SYS_SYMLINKAT: "symlinkat", unix.SYS_RENAMEAT: "renameat",
	unix.SYS_RENAMEAT2: "renameat2", unix.SYS_UNLINKAT: "unlinkat", unix.SYS_LINKAT: "linkat",
	unix.SYS_FSYNC: "fsync", unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_WRITE: "write", unix.SYS_OPENAT: "openat",
}

// Run starts cmd and kills it before its n-th change, counted from 0. It returns the name of
// the call that was prevented, or "" if the program made fewer changes and ended by itself;
// an exit status other than 0 is an error then. cmd must not have been started.
func Run(cmd *exec.Cmd, n int) (string, error) {
	type result struct {
		call string
		err  error
	}
	done := make(chan result)
	go func() { // ptrace(2) binds the tracees to one thread
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		call, err := run(cmd, n)
		done <- result{call, err}
	}()
	r := <-done
	return r.call, r.err
}

func run(cmd *exec.Cmd, n int) (string, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	pid := cmd.Process.Pid
	var ws unix.WaitStatus
	if _, err := unix.Wait4(pid, &ws, 0, nil); err != nil {
		return "", err
	}
	options := unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(pid, options); err != nil {
		return "", fmt.Errorf("ptrace: %w", err)
	}
	if err := unix.PtraceSyscall(pid, 0); err != nil {
		return "", fmt.Errorf("ptrace: %w", err)
	}
	killed := ""
	for {
		tid, err := unix.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return killed, err
		}
		switch {
		case tid == pid && (ws.Exited() || ws.Signaled()):
			cmd.Process.Release()
			if killed == "" && (ws.Signaled() || ws.ExitStatus() != 0) {
				return "", fmt.Errorf("%s: exit status %d, signal %v", cmd.Path, ws.ExitStatus(), ws.Signal())
			}
			return killed, nil
		case !ws.Stopped() || killed != "":
			continue
		}
		signal := 0
		switch stop := ws.StopSignal(); stop {
		case unix.SIGTRAP | 0x80:
			if call := findChangingCall(tid); call != "" {
				if n == 0 {
					killed = call
					unix.Kill(pid, unix.SIGKILL)
					continue
				}
				n--
			}
		case unix.SIGTRAP, unix.SIGSTOP: // a new thread
		default:
			signal = int(stop)
		}
		unix.PtraceSyscall(tid, signal)
	}
}

// findChangingCall returns the name of the changing call that the thread is about to make,
// or "".
func findChangingCall(tid int) string {
	var info [96]byte // struct ptrace_syscall_info, ptrace(2)
	n, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid),
		uintptr(len(info)), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 || n < 48 || info[0] != unix.PTRACE_SYSCALL_INFO_ENTRY {
		return ""
	}
	number := binary.NativeEndian.Uint64(info[24:])
	args := info[32:]
	name := changing[number]
	switch number {
	case unix.SYS_OPENAT:
		if binary.NativeEndian.Uint64(args[16:])&unix.O_CREAT == 0 {
			return ""
		}
	case unix.SYS_WRITE:
		fd := binary.NativeEndian.Uint64(args)
		target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, fd))
		if fd <= 2 || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "/dev/") ||
			strings.HasPrefix(target, "/proc/") {
			return ""
		}
	}
	return name
}
