// SPDX-License-Identifier: Apache-2.0

package vm

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
)

// errNotStarted reports a fault of the emulator: it lost its first timer interrupt, or failed
// an assertion about its own table of memory (iotlb_to_section). Both were seen on a busy machine.
var errNotStarted = errors.New("its kernel does not get to its first process")

func hasStarted(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "share", StartedFile))
	return err == nil
}

// runQEMU runs QEMU to its end and copies the command's output meanwhile.
func runQEMU(ctx context.Context, p places, dir string, o Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(o.startTimeout, func() {
		if !hasStarted(dir) {
			cancel(errNotStarted)
		}
	}).Stop()
	ended := make(chan error, 1)
	go func() {
		// The kernel kills QEMU when the thread that started it ends (PR_SET_PDEATHSIG).
		runtime.LockOSThread()
		cmd := exec.CommandContext(ctx, filepath.Join(p.repository, "tests/vm/tool"),
			append([]string{p.fetched, p.processor.emulator}, qemuArguments(p, dir, o)...)...)
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
			if context.Cause(ctx) == errNotStarted {
				return errNotStarted
			}
			_, copyErr := io.Copy(to, output)
			return errors.Join(err, copyErr)
		case <-time.After(50 * time.Millisecond):
			io.Copy(to, output) // an error shows again at the end
		}
	}
}

// keepTerminal returns a function that restores the terminal's modes: QEMU sets it to
// raw mode, and does not undo that when it is killed.
func keepTerminal() func() {
	state, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	return func() { unix.IoctlSetTermios(0, unix.TCSETS, state) }
}

// lastLines returns the last lines of a text.
func lastLines(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
