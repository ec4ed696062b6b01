// SPDX-License-Identifier: Apache-2.0

// Package slurmcmd runs a Slurm command with a deadline. If slurmctld is slow, unreachable or hangs, a
// command waits for minutes.
package slurmcmd

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gojail/gojail/internal/output"
)

// Command is a command to run.
type Command struct {
	Path       string // absolute
	Args       []string
	Conf       string              // SLURM_CONF; empty: Slurm's default
	Env        []string            // further variables; this process's environment is not inherited
	Credential *syscall.Credential // user to run as; nil: this process's user
	Input      string
}

// OutputMost is the limit of a command's output, in bytes.
const OutputMost = 4 << 20

// errorsMost is the limit of its error messages, in bytes.
const errorsMost = 64 << 10

// Run runs the command and returns its standard output. It kills the command when ctx ends, and returns a
// lateError. For a command that fails it returns an ExitError.
func Run(ctx context.Context, c Command) (string, error) {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir, cmd.WaitDelay = "/", time.Second
	cmd.Env = append([]string{"PATH=" + filepath.Dir(c.Path) + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C"}, c.Env...)
	if c.Conf != "" {
		cmd.Env = append(cmd.Env, "SLURM_CONF="+c.Conf)
	}
	if c.Credential != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.Credential}
	}
	stdout, stderr := &output.Head{Most: OutputMost}, &output.Head{Most: errorsMost}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.Input), stdout, stderr
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", &lateError{c.Path}
	case err != nil:
		return string(stdout.Bytes()), &ExitError{c.Path, err, strings.TrimSpace(string(stderr.Bytes()))}
	}
	return string(stdout.Bytes()), nil
}

// lateError reports a command that did not end in time.
type lateError struct{ Path string }

func (e *lateError) Error() string { return e.Path + " does not answer in time" }

// ExitError reports a command that could not be run or failed.
type ExitError struct {
	Path   string
	Err    error
	Stderr string
}

// Error returns a message with the first line of the command's error messages.
func (e *ExitError) Error() string {
	line, _, _ := strings.Cut(e.Stderr, "\n")
	return fmt.Sprintf("%s: %v: %.200s", e.Path, e.Err, line)
}

func (e *ExitError) Unwrap() error { return e.Err }
