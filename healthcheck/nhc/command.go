// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// program is a command of check_cmd_output or check_cmd_status.
type program struct {
	argv    []string
	code    int
	timeout time.Duration
	want    []*match
	output  bool // whether the output matters
}

// commandTime is the time limit of a command without -t.
const commandTime = 5 * time.Second

// parseCommandOutput parses check_cmd_output [-t S] [-r CODE] [-m MATCH]... {-e 'COMMAND' |
// COMMAND}.
func parseCommandOutput(l *Line, args []string) (assertion, error) {
	return parseProgram(l, args, "C:M:O:e:m:r:t:")
}

// parseCommandStatus parses check_cmd_status [-t S] -r CODE COMMAND.
func parseCommandStatus(l *Line, args []string) (assertion, error) {
	return parseProgram(l, args, "C:r:t:")
}

// parseProgram parses the options of a command. -C, -M and -O, for checks that are written in bash, have no effect.
func parseProgram(l *Line, args []string, letters string) (assertion, error) {
	opts, rest, err := parseOptions(args, letters)
	p := &program{argv: rest, timeout: commandTime, output: strings.Contains(letters, "m")}
	for _, o := range opts {
		var e error
		switch o.letter {
		case 'e':
			p.argv = strings.Fields(o.value)
		case 'm':
			e = addMatch(&p.want, o.value)
		case 'r':
			if p.code, e = strconv.Atoi(cmp.Or(o.value, "0")); e != nil || p.code < 0 || p.code > 255 {
				e = newRefusal(o.value, "an exit code")
			}
		case 't':
			var s int64
			s, e = parseSeconds(o.value)
			p.timeout = time.Duration(s) * time.Second
		}
		if err == nil {
			err = e
		}
	}
	switch {
	case err != nil:
		return nil, err
	case len(p.argv) == 0:
		return nil, errors.New("a command is missing")
	case !strings.HasPrefix(p.argv[0], "/"):
		return nil, newRefusal(p.argv[0], "the absolute path of the command")
	}
	l.Time, l.obstacle = p.timeout, func(*System) error { return p.findObstacle() }
	return p.checkProgram, nil
}

// checkProgram runs the command and compares its exit code and output.
func (p *program) checkProgram(ctx context.Context, s *System) (string, error) {
	name := p.argv[0]
	if err := p.findObstacle(); err != nil {
		return "", err
	}
	own, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	out, err := s.Command(own, name, p.argv[1:]...)
	var exit *exec.ExitError
	code := 0
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s had less than its %v left; raise the check's timeout", name, p.timeout)
	case own.Err() != nil:
		return fmt.Sprintf("%s did not end within %v", name, p.timeout), nil
	case errors.As(err, &exit):
		code = exitCode(exit)
	case errors.Is(err, exec.ErrWaitDelay): // it has ended well, and left a process with its output
	case err != nil:
		return "", fmt.Errorf("cannot run %s: %w", name, err)
	}
	search := newSearch(p.want)
	for row := range strings.Lines(string(out)) {
		if !search.addLine(strings.TrimSuffix(row, "\n")) {
			break
		}
	}
	search.addEnd()
	switch {
	case search.bad != nil:
		return search.describeFault("the output of " + name), nil
	case code != p.code:
		return fmt.Sprintf("%s ends with code %d instead of %d", name, code, p.code), nil
	}
	return search.describeFault("the output of " + name), nil
}

// exitCode returns the exit code as bash has it, bash(1) "EXIT STATUS".
func exitCode(exit *exec.ExitError) int {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}
