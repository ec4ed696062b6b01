// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
)

// LockFD is the descriptor of the lock file in a child.
const LockFD = 3

// Serve runs a child: it runs the checks that are requested on in, one after the other, until the end of in. lock is
// LockFD.
func Serve(checks []check.Check, in io.Reader, out io.Writer, lock int) error {
	var to childHost
	questions := json.NewDecoder(in)
	if err := questions.Decode(&to); err != nil {
		return fmt.Errorf(
			"this command is started by gojail-healthcheck itself, which requests checks on its standard input: %w",
			err)
	}
	answers := json.NewEncoder(out)
	host := check.Host{Roots: to.Roots, Node: to.Node, Settings: to.Settings, SlurmConf: to.SlurmConf,
		DryRun: to.DryRun, Now: time.Now, Shared: &check.Shared{}}
	s := server{checks: checks, host: host, lock: os.NewFile(uintptr(lock), "lock")}
	for {
		var q question
		if err := questions.Decode(&q); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		f, err := s.answerQuestion(q)
		if err != nil {
			return err
		}
		if err := answers.Encode(f); err != nil {
			return err
		}
	}
}

// server answers requests.
type server struct {
	checks []check.Check
	host   check.Host
	lock   *os.File
}

// answerQuestion runs the check of a request.
func (s *server) answerQuestion(q question) (check.Finding, error) {
	i := slices.IndexFunc(s.checks, func(c check.Check) bool { return c.Name == q.Check })
	if i < 0 {
		return check.Finding{}, fmt.Errorf("no check %.50q", q.Check)
	}
	writeLabel(s.lock, q.Check)
	host := s.host
	host.State, host.Command = q.State, s.runCommand
	ctx, cancel := context.WithTimeout(context.Background(), q.Timeout)
	defer cancel()
	return runCheck(ctx, s.checks[i], &host), nil
}

// writeLabel writes what is being done into a lock file, for a run that finds it locked. The label remains when it is
// done: a check that reports a hung file system has left a thread there.
func writeLabel(lock *os.File, name string) {
	_, _ = unix.Pwrite(int(lock.Fd()), fmt.Appendf(nil, "%-*s", labelSize, name), 0)
}

// labelSize exceeds the length of any check's name.
const labelSize = 64

// runCommand is Host.Command in a child: the program ends with the child at the latest. The
// program inherits the lock: a stuck program counts as its check.
func (s *server) runCommand(ctx context.Context, name string, args ...string) ([]byte, error) {
	return runProgram(ctx, s.lock, buildEnvironment(nil), name, args...)
}

// buildEnvironment returns the environment of programs, without variables inherited from
// slurmd.
func buildEnvironment(more []string) []string {
	return append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/"},
		more...)
}
