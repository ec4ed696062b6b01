// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Options of one guest.
type Options struct {
	Release  string            // of Slurm: 22.05, 24.11, 26.05; "": this machine's own root
	Command  []string          // run to its end in the guest, as root
	Env      []string          // added to PATH, HOME, GuestVariable, ...
	Dir      string            // working directory; default: the repository
	Files    map[string]string // files of this machine to have as Share/NAME
	Output   io.Writer         // gets the command's output and errors as they come; nil: dropped
	Timeout  time.Duration     // of the guest from its start; default 10 minutes
	Terminal bool              // the command's terminal is that of this process; no Output, no Timeout
}

// Result of a guest that came to its end.
type Result struct {
	Code    int    // exit status of the command; 128 and the signal that ended it
	Console string // what the guest's kernel and pid 1 printed
}

// Run boots a guest, runs the command and waits for the guest's end. The error
// says why there is no exit status, with the end of the console: the guest cannot
// be made here, its kernel panicked, it took too long or ctx was done.
func Run(ctx context.Context, o Options) (Result, error) {
	p, err := find(ctx, o.Release)
	if err != nil {
		return Result{}, err
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	if !o.Terminal {
		why := fmt.Errorf("not done after %v", o.Timeout)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, why)
		defer cancel()
	}
	dir, release, err := runDirectory(p.repository)
	if err != nil {
		return Result{}, err
	}
	defer release()
	if err := prepare(ctx, p, dir, o); err != nil {
		return Result{}, err
	}
	failure := boot(ctx, p, dir, o)
	console, _ := os.ReadFile(filepath.Join(dir, "console"))
	r := Result{Console: strings.ReplaceAll(string(console), "\r", "")}
	status, err := os.ReadFile(filepath.Join(dir, "share", StatusFile))
	if err == nil {
		r.Code, err = strconv.Atoi(string(status))
	}
	switch {
	case ctx.Err() != nil:
		failure = context.Cause(ctx)
	case failure == nil && err != nil:
		failure = errors.New("it ended without an exit status")
		if panicked := regexp.MustCompile(`Kernel panic - .*`).FindString(r.Console); panicked != "" {
			failure = errors.New(panicked)
		}
	}
	if failure != nil {
		return r, fmt.Errorf("vm: the guest failed: %w; the end of its console:\n%s", failure, tail(r.Console, 60))
	}
	return r, nil
}

// runDirectory makes the directory of one run, which is locked as long as the
// run lasts, and removes those of runs that were killed.
func runDirectory(repository string) (dir string, release func(), err error) {
	all := filepath.Join(repository, "build/vm")
	if err := os.MkdirAll(all, 0o755); err != nil {
		return "", nil, err
	}
	old, _ := filepath.Glob(filepath.Join(all, "run-*"))
	for _, dir := range old {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue // perhaps not locked yet
		}
		if lock, err := lock(dir); err == nil {
			os.RemoveAll(dir)
			lock.Close()
		}
	}
	if dir, err = os.MkdirTemp(all, "run-"); err != nil {
		return "", nil, err
	}
	held, err := lock(dir)
	if err != nil {
		return "", nil, err
	}
	return dir, func() { os.RemoveAll(dir); held.Close() }, nil
}

func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("vm: lock %s: %w", dir, err)
	}
	return f, nil
}

// prepare writes what the guest boots from and its order.
func prepare(ctx context.Context, p places, dir string, o Options) error {
	shared := filepath.Join(dir, "share")
	if err := os.Mkdir(shared, 0o755); err != nil {
		return err
	}
	for name, path := range o.Files {
		if out, err := exec.CommandContext(ctx, "cp", path, filepath.Join(shared, name)).CombinedOutput(); err != nil {
			return fmt.Errorf("vm: copy %s for the guest: %w: %s", path, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(shared, OutputFile), nil, 0o644); err != nil {
		return err
	}
	order, err := json.Marshal(newOrder(p, o))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(shared, OrderFile), order, 0o644); err != nil {
		return err
	}
	return makeInitramfs(ctx, p, filepath.Join(dir, "initramfs"))
}

func newOrder(p places, o Options) Order {
	order := Order{Command: o.Command, Dir: o.Dir, Repository: p.repository, Release: o.Release, Terminal: o.Terminal}
	if order.Dir == "" {
		order.Dir = p.repository
	}
	guest := o.Release
	if guest == "" {
		guest = "host"
	}
	order.Env = append([]string{"PATH=" + Path, "HOME=/root", "USER=root", "LANG=C.UTF-8", "SHELL=/bin/bash",
		GuestVariable + "=" + guest, "GOJAIL_RELEASE=" + o.Release, "TERM=" + os.Getenv("TERM")}, o.Env...)
	if o.Terminal {
		if size, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ); err == nil {
			order.Rows, order.Columns = size.Row, size.Col
		}
	}
	return order
}

// boot runs QEMU to its end and copies the command's output meanwhile.
func boot(ctx context.Context, p places, dir string, o Options) error {
	ended := make(chan error, 1)
	go func() {
		// The kernel kills QEMU when the thread that started it ends (PR_SET_PDEATHSIG).
		runtime.LockOSThread()
		cmd := exec.CommandContext(ctx, filepath.Join(p.repository, "tests/vm/tool"),
			append([]string{p.fetched, "usr/bin/qemu-system-x86_64"}, arguments(p, dir, o)...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.Env = []string{"PATH=" + Path, "TMPDIR=" + dir}
		var errs strings.Builder
		cmd.Stderr = &errs
		if o.Terminal {
			cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
			defer keepTerminal()()
		}
		err := cmd.Run()
		if err != nil {
			err = fmt.Errorf("QEMU: %w: %s", err, strings.TrimSpace(errs.String()))
		}
		ended <- err
	}()
	output, err := os.Open(filepath.Join(dir, "share", OutputFile))
	if err != nil {
		return errors.Join(err, <-ended)
	}
	defer output.Close()
	to := o.Output
	if to == nil {
		to = io.Discard
	}
	for {
		select {
		case err := <-ended:
			_, copyErr := io.Copy(to, output)
			return errors.Join(err, copyErr)
		case <-time.After(50 * time.Millisecond):
			io.Copy(to, output) // an error shows again at the end
		}
	}
}

// keepTerminal returns what puts the terminal back as it is now: QEMU makes it
// raw, and does not get to undo that when it is killed.
func keepTerminal() func() {
	state, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	return func() { unix.IoctlSetTermios(0, unix.TCSETS, state) }
}

// tail is the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
