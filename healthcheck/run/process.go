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

	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/output"
)

// Maximum number of bytes kept of a program's standard output and standard error.
const (
	outputMax = 4 << 20
	errorsMax = 64 << 10
)

// heldError reports that a process of an earlier run still exists.
type heldError struct {
	lock string
	by   string // the check that the process was running
}

func (e *heldError) Error() string {
	return fmt.Sprintf("a process of an earlier run (%s) is stuck; to find it: fuser -v %s",
		cmp.Or(e.by, "task unknown"), e.lock)
}

// process is a program in its own process group that holds a lock.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   io.ReadCloser
	ended *deadline.Pending[error] // returns the result of waiting
}

// startProcess starts a program with the environment buildEnvironment(env). The program is
// killed when this process ends. The lock is closed here, since the program has its own
// descriptor of it.
func startProcess(lock *os.File, argv, env []string) (*process, error) {
	defer lock.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = buildEnvironment(env)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	p := &process{cmd: cmd}
	var err error
	if p.out, err = cmd.StdoutPipe(); err == nil {
		p.in, err = cmd.StdinPipe()
	}
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	p.ended = deadline.Start(func() error {
		// The kernel sends Pdeathsig when the thread that started the program ends, prctl(2).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return err
		}
		// cmd.Wait is not used, since it closes the pipe before all of it is read.
		state, err := cmd.Process.Wait()
		if err == nil && !state.Success() {
			err = &exec.ExitError{ProcessState: state}
		}
		return err
	})
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", argv[0], err)
	}
	return p, nil
}

// takeLock locks a lock file that a program will inherit.
func takeLock(lock string) (*os.File, error) {
	file, err := filelock.Try(lock)
	if errors.Is(err, filelock.ErrBusy) {
		return nil, &heldError{lock, readLabel(lock)}
	}
	return file, err
}

// readLabel returns the label that the holder wrote into a lock file.
func readLabel(lock string) string {
	file, err := os.Open(lock)
	if err != nil {
		return ""
	}
	defer file.Close()
	by, _ := io.ReadAll(io.LimitReader(file, 100))
	return strings.TrimSpace(string(by))
}

// takeLockUntil retries takeLock until a deadline, since a killed process may take a moment to
// end.
func takeLockUntil(lock string, end time.Time) (file *os.File, err error) {
	for ; ; time.Sleep(lastWait / 20) {
		file, err = takeLock(lock)
		var held *heldError
		if !errors.As(err, &held) || time.Now().After(end) {
			return file, err
		}
	}
}

// lastWait is the time for a killed process to end.
const lastWait = 100 * time.Millisecond

// exitWait is the time for a program that says nothing more to end, which on a busy node is not at once, and for a
// killed one before it counts as stuck.
const exitWait = time.Second

// kill kills the program and its process group, and waits a moment for its end. The number of a process that has ended
// may have been reused.
func (p *process) kill() {
	defer p.out.Close()
	defer p.in.Close()
	if !errors.Is(p.wait(0), errStuck) {
		return
	}
	_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL)
	p.wait(lastWait)
}

var errStuck = errors.New("it is stuck in the kernel")

// wait waits for the program to end, for that long at most.
func (p *process) wait(limit time.Duration) error {
	err, inTime := p.ended.AwaitFor(limit)
	if !inTime {
		return errStuck
	}
	return err
}

// runProgram runs a program in the process group of this child; the program inherits the lock.
func runProgram(ctx context.Context, lock *os.File, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay, cmd.ExtraFiles = env, "/", lastWait, []*os.File{lock}
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	runtime.LockOSThread() // for Pdeathsig, as in startProcess
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
