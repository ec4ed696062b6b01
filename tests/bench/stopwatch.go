// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/gojail/gojail/tests/harness"
)

// stopwatch runs a user's commands inside the machine and times them
// (peers/stopwatch.c), so that no nsenter or shell is in the figures.
type stopwatch struct {
	machine *harness.Cluster
	command *exec.Cmd
	cancel  context.CancelFunc
	in      io.WriteCloser
	out     *bufio.Reader
}

const (
	outFile = "/tmp/bench.out"
	errFile = "/tmp/bench.err"
)

// timed is one command that has ended.
type timed struct {
	code           int
	wall, cpu      time.Duration // of the command itself: srun, not the node
	stdout, stderr string
}

func (t timed) String() string {
	return fmt.Sprintf("exit %d: %s%s", t.code, t.stdout, t.stderr)
}

func (m *machine) startStopwatch() error {
	ctx, cancel := context.WithCancel(context.Background())
	command := m.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{partsDir + "/stopwatch", outFile, errFile}})
	in, err := command.StdinPipe()
	if err != nil {
		cancel()
		return err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		cancel()
		return err
	}
	if err := command.Start(); err != nil {
		cancel()
		return fmt.Errorf("bench: start the stopwatch: %w", err)
	}
	m.watch = &stopwatch{machine: m.Cluster, command: command, cancel: cancel, in: in, out: bufio.NewReader(out)}
	return nil
}

func (s *stopwatch) close() {
	s.in.Close()
	s.cancel()
	s.command.Wait()
}

// runCommand runs a command, which may begin with NAME=VALUE, as the user of the bench.
func (s *stopwatch) runCommand(words ...string) (timed, error) {
	if _, err := fmt.Fprintln(s.in, strings.Join(words, "\t")); err != nil {
		return timed{}, fmt.Errorf("bench: the stopwatch has ended: %w", err)
	}
	line, err := s.out.ReadString('\n')
	if err != nil {
		return timed{}, fmt.Errorf("bench: the stopwatch has ended: %w", err)
	}
	var t timed
	var wall, cpu int64
	if _, err := fmt.Sscan(line, &t.code, &wall, &cpu); err != nil {
		return timed{}, fmt.Errorf("bench: the stopwatch says %q: %w", line, err)
	}
	t.wall, t.cpu = time.Duration(wall)*time.Microsecond, time.Duration(cpu)*time.Microsecond
	stdout, _ := os.ReadFile(s.machine.Path(outFile))
	stderr, _ := os.ReadFile(s.machine.Path(errFile))
	t.stdout, t.stderr = string(stdout), string(stderr)
	return t, nil
}
