// SPDX-License-Identifier: Apache-2.0

// Package command runs a command with a deadline: a Slurm command waits for minutes if slurmctld is slow or
// unreachable, and a command that asks hardware can hang in the kernel.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/output"
)

// Command is a command to run.
type Command struct {
	Path       string // absolute
	Args       []string
	Env        []string            // variables besides PATH and LC_ALL; this process's environment is not inherited
	Credential *syscall.Credential // user to run as; nil: this process's user
	Input      string
	Stdout     io.Writer // receives the output, which Run then does not return; its error ends the command
	Lock       string    // file that is locked while the command exists; empty: none
}

// OutputMost is the limit of a command's output, in bytes.
const OutputMost = 4 << 20

// errorsMost is the limit of its error messages, in bytes.
const errorsMost = 64 << 10

// lastWait is the time for a killed command to end before it counts as stuck in the kernel.
const lastWait = 100 * time.Millisecond

// Run runs the command and returns its standard output. When ctx ends, it kills the command and its children and
// returns a lateError, even if the command is stuck in the kernel. The command ends with this process
// (PR_SET_PDEATHSIG). If the command fails or cannot be started, Run returns an ExitError. With a Lock it starts
// nothing while an earlier command with that lock exists.
func Run(ctx context.Context, c Command) (string, error) {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir, cmd.WaitDelay = "/", time.Second
	cmd.Env = append([]string{"PATH=" + filepath.Dir(c.Path) + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"LC_ALL=C"}, c.Env...)

	var lock *os.File
	if c.Lock != "" {
		var err error
		if lock, err = takeLock(ctx, c); err != nil {
			return "", err
		}
		cmd.ExtraFiles = []*os.File{lock}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.Credential, Setpgid: true, Pdeathsig: unix.SIGKILL}
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	stdout, stderr := &output.Head{Most: OutputMost}, &output.Head{Most: errorsMost}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.Input), stdout, stderr
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	ended := deadline.Start(func() error {
		// The kernel sends Pdeathsig when the thread that started the command ends (prctl(2)).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		lock.Close() // The command has its own descriptor. A busy machine may start it after Run has returned.
		if err == nil {
			err = cmd.Wait()
		}
		return err
	})
	err, inTime := ended.Await(ctx)
	if !inTime {
		ended.AwaitFor(lastWait)
	}
	switch {
	case ctx.Err() != nil:
		return "", &lateError{c.Path}
	case err != nil:
		return string(stdout.Bytes()), &ExitError{c.Path, err, strings.TrimSpace(string(stderr.Bytes()))}
	}
	return string(stdout.Bytes()), nil
}

// takeLock locks the command's lock file. It waits a moment, because a command that was just killed may not have ended
// yet.
func takeLock(ctx context.Context, c Command) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, lastWait)
	defer cancel()
	lock, err := filelock.Wait(ctx, c.Lock)
	if errors.Is(err, filelock.ErrBusy) {
		return nil, fmt.Errorf("cannot run %s: an earlier one is stuck; to find it: fuser -v %s", c.Path, c.Lock)
	}
	return lock, err
}

func killGroup(pid int) error {
	err := unix.Kill(-pid, unix.SIGKILL)
	if err == unix.ESRCH {
		return os.ErrProcessDone
	}
	return err
}

// lateError is the error for a command that did not end in time.
type lateError struct{ Path string }

func (e *lateError) Error() string { return e.Path + " does not answer in time" }

// ExitError is the error for a command that could not be started or failed.
type ExitError struct {
	Path   string
	Err    error
	Stderr string
}

// Error returns a message with the first line of the command's error messages.
func (e *ExitError) Error() string {
	line, _, _ := strings.Cut(e.Stderr, "\n")
	if line == "" {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s: %v: %.200s", e.Path, e.Err, line)
}

func (e *ExitError) Unwrap() error { return e.Err }
