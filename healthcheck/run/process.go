// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/output"
)

// How much of a program's output and of its error messages is kept, in bytes.
const (
	outputMax = 4 << 20
	errorsMax = 64 << 10
)

// heldError says that a process of an earlier run is still there.
type heldError struct {
	lock string
	by   string // what it was doing
}

func (e *heldError) Error() string {
	return fmt.Sprintf("a process of an earlier run (%s) is stuck; to see which: fuser -v %s", cmp.Or(e.by, "before it said with what"), e.lock)
}

// process is a program in a process group of its own, which holds a lock.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser // nil: it has no input
	out   io.ReadCloser
	ended chan error // what it ended with, once
}

// start starts a program whose environment is bare(env). It ends with this process.
// The lock is closed here: the program has its own descriptor of it.
func start(lock *os.File, input bool, argv, env []string) (*process, error) {
	defer lock.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = bare(env)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	p := &process{cmd: cmd, ended: make(chan error, 1)}
	var err error
	if p.out, err = cmd.StdoutPipe(); err == nil && input {
		p.in, err = cmd.StdinPipe()
	}
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		// The signal of Pdeathsig comes with the end of the thread that started it, prctl(2).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			// Not cmd.Wait, which closes the pipe before all of it is read.
			state, err := cmd.Process.Wait()
			if err == nil && !state.Success() {
				err = &exec.ExitError{ProcessState: state}
			}
			p.ended <- err
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", argv[0], err)
	}
	return p, nil
}

// take locks a lock file for the program to come.
func take(lock string) (*os.File, error) {
	file, err := filelock.Try(lock)
	if errors.Is(err, filelock.ErrBusy) {
		return nil, &heldError{lock, readLabel(lock)}
	}
	return file, err
}

// readLabel returns what the holder of a lock file says there.
func readLabel(lock string) string {
	file, err := os.Open(lock)
	if err != nil {
		return ""
	}
	defer file.Close()
	by, _ := io.ReadAll(io.LimitReader(file, 100))
	return strings.TrimSpace(string(by))
}

// takeUntil is take with some patience: a process that was killed may take a moment to end.
func takeUntil(lock string, end time.Time) (file *os.File, err error) {
	for ; ; time.Sleep(lastWait / 20) {
		file, err = take(lock)
		var held *heldError
		if !errors.As(err, &held) || time.Now().After(end) {
			return file, err
		}
	}
}

// lastWait is for a killed process to be gone, before it counts as stuck.
const lastWait = 100 * time.Millisecond

// kill ends the program and all that it started, and tells whether it is gone. The
// number of one that has ended may be another's by now.
func (p *process) kill() bool {
	defer p.out.Close()
	if p.in != nil {
		defer p.in.Close()
	}
	select {
	case err := <-p.ended:
		p.ended <- err
		return true
	default:
		_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL)
		return !errors.Is(p.wait(), errStuck)
	}
}

var errStuck = errors.New("it is stuck in the kernel")

// wait waits a moment for the program's end.
func (p *process) wait() error {
	select {
	case err := <-p.ended:
		p.ended <- err
		return err
	case <-time.After(lastWait):
		return errStuck
	}
}

// Command runs a program with a bare environment and env until ctx ends, at most,
// and returns its standard output. An earlier one with the same lock that is stuck
// is an error.
func Command(ctx context.Context, lock string, env []string, name string, args ...string) ([]byte, error) {
	file, err := takeUntil(lock, time.Now().Add(lastWait))
	if err != nil {
		return nil, err
	}
	p, err := start(file, false, append([]string{name}, args...), env)
	if err != nil {
		return nil, err
	}
	defer p.kill()
	type text struct {
		data []byte
		err  error
	}
	done := make(chan text, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(p.out, outputMax))
		done <- text{data, err}
	}()
	var all text
	select {
	case all = <-done:
	case <-ctx.Done():
		return nil, fmt.Errorf("%s does not answer in time", name)
	}
	if all.err != nil {
		return nil, all.err
	}
	select {
	case err := <-p.ended:
		p.ended <- err
		return all.data, err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s does not end in time", name)
	}
}

// runProgram runs a program in the process group of this child, which has the lock, too.
func runProgram(ctx context.Context, lock *os.File, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay, cmd.ExtraFiles = env, "/", lastWait, []*os.File{lock}
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	runtime.LockOSThread() // for Pdeathsig, as in start
	defer runtime.UnlockOSThread()
	stdout, stderr := &output.Head{Most: outputMax}, &output.Head{Most: errorsMax}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s does not answer in time", name)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		exit.Stderr = stderr.Bytes()
	}
	return stdout.Bytes(), err
}
