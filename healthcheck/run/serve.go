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

// Service is what a child can do.
type Service struct {
	Checks []check.Check
	Writes map[string]func(path string, text []byte) error // by kind, for Runner.Writer
}

// Serve is a child: it does what in asks for, one after the other, until the end of
// in. lock is LockFD.
func Serve(service Service, in io.Reader, out io.Writer, lock int) error {
	var to recipient
	questions := json.NewDecoder(in)
	if err := questions.Decode(&to); err != nil {
		return fmt.Errorf("this command is for gojail-healthcheck itself, which asks for checks on its standard input: %w", err)
	}
	answers := json.NewEncoder(out)
	host := check.Host{Roots: to.Roots, Node: to.Node, Settings: to.Settings, SlurmConf: to.SlurmConf, Now: time.Now, Shared: &check.Shared{}}
	s := server{Service: service, host: host, lock: os.NewFile(uintptr(lock), "lock")}
	for {
		var q question
		if err := questions.Decode(&q); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		f, err := s.answer(context.Background(), q)
		if err != nil {
			return err
		}
		if err := answers.Encode(f); err != nil {
			return err
		}
	}
}

// server answers questions, in a process of its own or in that which asks.
type server struct {
	Service
	host check.Host
	lock *os.File
	last string // check
}

func (s *server) answer(ctx context.Context, q question) (check.Finding, error) {
	if q.Write != "" {
		return s.write(q)
	}
	for _, check := range s.Checks {
		if check.Name != q.Check {
			continue
		}
		s.last = q.Check
		s.label(q.Check)
		host := s.host
		host.Kept, host.Command = q.Kept, s.command
		ctx, cancel := context.WithTimeout(ctx, q.Timeout)
		defer cancel()
		return once(ctx, check, &host), nil
	}
	return check.Finding{}, fmt.Errorf("no check %.50q", q.Check)
}

// write answers with the error as the text.
func (s *server) write(q question) (check.Finding, error) {
	write := s.Writes[q.Write]
	if write == nil {
		return check.Finding{}, fmt.Errorf("nothing of the kind %.20q is written", q.Write)
	}
	s.label(q.Write)
	defer func() { s.label(s.last) }()
	if err := write(q.Path, q.Text); err != nil {
		return check.Finding{Text: err.Error()}, nil
	}
	return check.Finding{Verdict: check.OK}, nil
}

// label writes into the lock file what is under way, for the run that finds it held.
// It stays when that is done: a check that tells of a file system that hangs has left
// a thread there.
func (s *server) label(name string) {
	_, _ = unix.Pwrite(int(s.lock.Fd()), fmt.Appendf(nil, "%-*s", labelSize, name), 0)
}

// labelSize is longer than the name of any check.
const labelSize = 64

// command is Host.Command in a child: it ends with the child at the latest. It has the
// lock as well: a program that is stuck counts as its check.
func (s *server) command(ctx context.Context, name string, args ...string) ([]byte, error) {
	return runProgram(ctx, s.lock, bare(nil), name, args...)
}

// bare is the environment of programs: what slurmd was started with is of no concern to them.
func bare(more []string) []string {
	return append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/"}, more...)
}
