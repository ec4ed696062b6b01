// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gojail/gojail/internal/command"
)

// Program is one of Slurm's programs with its arguments.
type Program struct {
	command.Command
	Conf    string        // slurm.conf; empty: Slurm's default
	Timeout time.Duration // 0: the deadline of the context alone
	UTC     bool          // whether the program prints times in UTC, not in the zone of this machine
}

// environment returns the variables of all of Slurm's programs, which inherit none: a variable such as SQUEUE_FORMAT,
// SINFO_ALL or SLURM_CLUSTERS changes what they print.
func (p Program) environment() []string {
	env := []string{"SLURM_BITSTR_LEN=0"} // lists of tasks are not cut off
	if p.Conf != "" {
		env = append(env, "SLURM_CONF="+p.Conf)
	}
	if p.UTC {
		env = append(env, "TZ=UTC0")
	}
	return append(env, p.Env...)
}

// Run runs one of Slurm's programs and returns its output, which command.Run limits. All of gojail's programs run
// Slurm's programs by Run or read.
func Run(ctx context.Context, p Program) (string, error) {
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeout)
		defer cancel()
	}
	p.Env = p.environment()
	return command.Run(ctx, p.Command)
}

// outputMost is the limit of an output that is parsed while it arrives.
const outputMost = 1 << 30

// restMost is the number of bytes that are read of an output that cannot be parsed.
const restMost = 64 << 20

// read runs a program and returns the result of parse, which reads the output while it arrives. An error of the program
// takes precedence over one of parse.
func read[T any](ctx context.Context, p Program, parse func(io.Reader) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	pr, pw := io.Pipe()
	var result T
	parsed := make(chan error, 1)
	go func() {
		var err error
		output := &io.LimitedReader{R: pr, N: outputMost}
		rest := int64(outputMost)
		if result, err = parse(output); err != nil {
			rest = restMost // the program ends by itself, not by SIGPIPE, except if it prints without end
		}
		if _, restErr := io.CopyN(io.Discard, output, rest); err == nil && restErr != io.EOF {
			err = restErr
		}
		if output.N == 0 {
			err = fmt.Errorf("it is longer than %d bytes", outputMost)
		}
		if err != nil {
			err = &ReadError{filepath.Base(p.Path), err}
		}
		pr.CloseWithError(err) // the program need not print more
		parsed <- err
	}()
	p.Stdout = pw
	_, err := Run(ctx, p)
	pw.Close()
	readErr := <-parsed
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return result, &TimeoutError{filepath.Base(p.Path), p.Timeout}
	}
	if readErr != nil && (err == nil || failedSilently(err)) {
		err = readErr
	}
	return result, err
}

// failedSilently reports whether a program was run and failed without a message.
func failedSilently(err error) bool {
	var failed *command.ExitError
	if !errors.As(err, &failed) {
		return false
	}
	var status *exec.ExitError // missing if the program could not be started
	return failed.Stderr == "" && errors.As(failed.Err, &status)
}

// TimeoutError is the error for a program that did not end in time and was killed.
type TimeoutError struct {
	Name string
	Most time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s does not answer in time, which is %v; see: scontrol ping, sdiag", e.Name, e.Most)
}

// ReadError is the error for an output that cannot be parsed.
type ReadError struct {
	Name string
	Err  error
}

func (e *ReadError) Error() string {
	return "cannot parse the output of " + e.Name + ": " + e.Err.Error()
}

func (e *ReadError) Unwrap() error { return e.Err }
