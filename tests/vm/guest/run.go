// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/vm"
)

// terminal is the guest's end of the second serial line.
var terminal = "/dev/" + vm.FindSerialLines() + "1"

// runCommand starts the command and reaps every process until it has ended. The exit
// status is 128 and the signal for a command that a signal ended.
func runCommand(order vm.Order) (status int, err error) {
	attr := &os.ProcAttr{Dir: order.Dir, Env: order.Env, Sys: &syscall.SysProcAttr{Setsid: true}}
	if attr.Files, err = openDescriptors(order); err != nil {
		return 0, err
	}
	if order.Terminal {
		attr.Sys.Setctty = true // Ctty 0: the child's standard input
	}
	os.Setenv("PATH", vm.Path)
	program, err := exec.LookPath(order.Command[0])
	if err != nil {
		return 0, err
	}
	command, err := os.StartProcess(program, order.Command, attr)
	if err != nil {
		return 0, fmt.Errorf("start %v: %w", order.Command, err)
	}
	for {
		var state unix.WaitStatus
		pid, err := unix.Wait4(-1, &state, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, fmt.Errorf("wait for the command: %w", err)
		case pid != command.Pid:
		case state.Signaled():
			return 128 + int(state.Signal()), nil
		default:
			return state.ExitStatus(), nil
		}
	}
}

// openDescriptors opens the command's standard input, output and error.
func openDescriptors(order vm.Order) ([]*os.File, error) {
	if order.Terminal {
		line, err := os.OpenFile(terminal, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			return nil, err
		}
		size := unix.Winsize{Row: order.Rows, Col: order.Columns}
		if err := unix.IoctlSetWinsize(int(line.Fd()), unix.TIOCSWINSZ, &size); err != nil {
			return nil, fmt.Errorf("set the size of %s: %w", terminal, err)
		}
		return []*os.File{line, line, line}, nil
	}
	null, err := os.Open("/dev/null")
	if err != nil {
		return nil, err
	}
	output, err := os.OpenFile(filepath.Join(vm.Share, vm.OutputFile), os.O_WRONLY|os.O_APPEND, 0)
	return []*os.File{null, output, output}, err
}
