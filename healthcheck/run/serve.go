// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck"
)

// LockFD is the descriptor of the lock file in a child. It is left open for the
// programs that a check starts: one of those that is stuck counts as well.
const LockFD = 3

// Serve is a child: it does the checks that in asks for, out of checks, one after
// the other until the end of in. lock is LockFD.
func Serve(checks []healthcheck.Check, in io.Reader, out io.Writer, lock int) error {
	var to recipient
	questions := json.NewDecoder(in)
	if err := questions.Decode(&to); err != nil {
		return fmt.Errorf("this command is for gojail-healthcheck itself, which asks for checks on its standard input: %w", err)
	}
	byName := map[string]healthcheck.Check{}
	for _, check := range checks {
		byName[check.Name] = check
	}
	answers, shared := json.NewEncoder(out), &healthcheck.Shared{}
	for {
		var q question
		if err := questions.Decode(&q); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		check, known := byName[q.Check]
		if !known {
			return fmt.Errorf("no check %.50q", q.Check)
		}
		label(lock, q.Check)
		host := healthcheck.Host{Roots: to.Roots, Node: to.Node, Config: to.Config, Now: time.Now, Command: command, Shared: shared, Kept: q.Kept}
		ctx, cancel := context.WithTimeout(context.Background(), q.Timeout)
		f := once(ctx, check, &host)
		cancel()
		if err := answers.Encode(f); err != nil {
			return err
		}
	}
}

// label writes into the lock file which check is under way, for the run that finds
// it held. It stays when the check has answered: one that tells of a file system
// that hangs has left a thread there.
func label(lock int, name string) {
	_, _ = unix.Pwrite(lock, fmt.Appendf(nil, "%-*s", labelSize, name), 0)
}

// labelSize is longer than the name of any check.
const labelSize = 64

// command is Host.Command in a child: it ends with the child at the latest.
func command(ctx context.Context, name string, args ...string) ([]byte, error) {
	return output(ctx, bare(nil), name, args...)
}

// bare is the environment of programs: what slurmd was started with is of no concern to them.
func bare(more []string) []string {
	return append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/"}, more...)
}
