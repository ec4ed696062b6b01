// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
)

// LockFD is the descriptor of the lock file in a child.
const LockFD = 3

// Service is the set of operations of a child.
type Service struct {
	Checks []check.Check
	Writes map[string]func(path string, text []byte) error // by kind, for Runner.NewWriter
}

// Serve runs a child: it performs the requests read from in, one after the other, until the end
// of in. lock is LockFD.
func Serve(service Service, in io.Reader, out io.Writer, lock int) error {
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
	s := server{Service: service, host: host, lock: os.NewFile(uintptr(lock), "lock")}
	for {
		var q question
		if err := questions.Decode(&q); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		f, err := s.answerQuestion(context.Background(), q)
		if err != nil {
			return err
		}
		if err := answers.Encode(f); err != nil {
			return err
		}
	}
}

// server answers requests, in its own process or in that of the caller.
type server struct {
	Service
	host check.Host
	lock *os.File
	last string // last check
}

// answerQuestion performs one request.
func (s *server) answerQuestion(ctx context.Context, q question) (check.Finding, error) {
	if q.Write != "" {
		return s.writeFile(q)
	}
	for _, check := range s.Checks {
		if check.Name != q.Check {
			continue
		}
		s.last = q.Check
		s.writeLabel(q.Check)
		host := s.host
		host.State, host.Command = q.State, s.runCommand
		ctx, cancel := context.WithTimeout(ctx, q.Timeout)
		defer cancel()
		return runCheck(ctx, check, &host), nil
	}
	return check.Finding{}, fmt.Errorf("no check %.50q", q.Check)
}

// writeFile writes a file; the finding's text is the error.
func (s *server) writeFile(q question) (check.Finding, error) {
	write := s.Writes[q.Write]
	if write == nil {
		return check.Finding{}, fmt.Errorf("unknown kind of file %.20q", q.Write)
	}
	s.writeLabel(q.Write)
	defer func() { s.writeLabel(s.last) }()
	if err := write(q.Path, q.Text); err != nil {
		return check.Finding{Text: err.Error()}, nil
	}
	return check.Finding{Verdict: check.OK}, nil
}

// writeLabel writes the current check into the lock file, for a run that finds it locked. The
// label remains when the check is done: a check that reports a hung file system has left a
// thread there.
func (s *server) writeLabel(name string) {
	_, _ = unix.Pwrite(int(s.lock.Fd()), fmt.Appendf(nil, "%-*s", labelSize, name), 0)
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
