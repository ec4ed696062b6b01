// SPDX-License-Identifier: Apache-2.0

// Package slurmcmd runs a command of Slurm with a deadline. slurmctld may be slow, away or
// hang: then a command waits for minutes.
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

// Command is what is to be run.
type Command struct {
	Path       string // absolute
	Args       []string
	Conf       string              // SLURM_CONF; empty: Slurm's default
	Env        []string            // further variables; nothing of this process's environment is given
	Credential *syscall.Credential // whom it runs as; nil: as this process
	Input      string
}

// OutputMost is how much of a command's output is kept, in bytes.
const OutputMost = 4 << 20

// errorsMost is how much of its error messages is kept.
const errorsMost = 64 << 10

// Run returns the standard output of the command. It is killed when ctx ends, and then the
// error says so; one that failed is an ExitError.
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

// lateError is a command that did not answer in time.
type lateError struct{ Path string }

func (e *lateError) Error() string { return e.Path + " does not answer in time" }

// ExitError is a command that could not be run or failed.
type ExitError struct {
	Path   string
	Err    error
	Stderr string
}

// Error has the first line of the command's error messages.
func (e *ExitError) Error() string {
	line, _, _ := strings.Cut(e.Stderr, "\n")
	return fmt.Sprintf("%s: %v: %.200s", e.Path, e.Err, line)
}

func (e *ExitError) Unwrap() error { return e.Err }
