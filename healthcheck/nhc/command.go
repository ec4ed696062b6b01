// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/trusted"
)

// program is a command of check_cmd_output or check_cmd_status.
type program struct {
	argv    []string
	code    int
	timeout time.Duration
	want    []*match
}

// commandTime is the time limit of a command without -t.
const commandTime = 5 * time.Second

// parseCommandOutput parses check_cmd_output [-t S] [-r CODE] [-m MATCH]... {-e 'COMMAND' |
// COMMAND}.
func parseCommandOutput(_ *Line, args []string) (assertion, error) {
	return parseProgram(args, "e:m:r:t:")
}

// parseCommandStatus parses check_cmd_status [-t S] -r CODE COMMAND.
func parseCommandStatus(_ *Line, args []string) (assertion, error) {
	return parseProgram(args, "r:t:")
}

// parseProgram parses the options of a command.
func parseProgram(args []string, letters string) (assertion, error) {
	opts, rest, err := parseOptions(args, letters)
	p := &program{argv: rest, timeout: commandTime}
	for _, o := range opts {
		var e error
		switch o.letter {
		case 'e':
			p.argv = strings.Fields(o.value)
		case 'm':
			e = addMatch(&p.want, o.value)
		case 'r':
			if p.code, e = strconv.Atoi(o.value); e != nil || p.code < 0 || p.code > 255 {
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
	return p.checkProgram, nil
}

// checkProgram runs the command and compares its exit code and output.
func (p *program) checkProgram(ctx context.Context, s *System) (string, error) {
	name := p.argv[0]
	if err := checkTrusted(name); err != nil {
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
		code = exit.ExitCode() // -1: killed by a signal
	case err != nil:
		return "", fmt.Errorf("cannot run %s: %w", name, err)
	}
	search := newSearch(p.want)
	for row := range strings.Lines(string(out)) {
		if !search.addLine(strings.TrimSuffix(row, "\n")) {
			break
		}
	}
	switch {
	case search.bad != nil:
		return search.describeFault("the output of " + name), nil
	case code != p.code:
		return fmt.Sprintf("%s ends with code %d instead of %d", name, code, p.code), nil
	}
	return search.describeFault("the output of " + name), nil
}

// checkTrusted returns an error for a program that somebody other than root could replace.
func checkTrusted(path string) error {
	if err := trusted.Parents(path); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return trusted.Check(path, &st, unix.S_IFREG)
}

var (
	host   = regexp.MustCompile(`^[A-Za-z0-9:][-A-Za-z0-9.:_%]*$`)
	number = regexp.MustCompile(`^[0-9]{1,6}(?:\.[0-9]{1,3})?$`)
)

// parsePing parses check_net_ping OPTIONS HOSTS: ping(8) to each host with one packet, a TTL of
// 2 and one second unless the options differ.
func parsePing(_ *Line, args []string) (assertion, error) {
	opts, targets, err := parseOptions(args, "I:W:c:i:s:t:w:")
	value := map[byte]string{'c': "1", 't': "2", 'w': "1"}
	for _, o := range opts {
		if value[o.letter] = o.value; !number.MatchString(o.value) && (o.letter != 'I' || !host.MatchString(o.value)) {
			err = errors.Join(err, newRefusal(o.value, "a number"))
		}
	}
	for _, target := range targets {
		if !host.MatchString(target) {
			err = errors.Join(err, newRefusal(target, "a host"))
		}
	}
	if len(targets) == 0 && err == nil {
		err = errors.New("a host is missing")
	}
	argv := []string{"-q", "-n"}
	for _, letter := range []byte("IistcwW") {
		if value[letter] != "" {
			argv = append(argv, "-"+string(letter), value[letter])
		}
	}
	return func(ctx context.Context, s *System) (string, error) {
		for _, target := range targets {
			if fault, err := pingHost(ctx, s, append(argv, target)); fault != "" || err != nil {
				return fault, err
			}
		}
		return "", nil
	}, err
}

// pingHost runs ping(8) for one host.
func pingHost(ctx context.Context, s *System, argv []string) (string, error) {
	target := argv[len(argv)-1]
	paths := s.pings
	if paths == nil {
		paths = []string{"/usr/bin/ping", "/bin/ping"}
	}
	for _, name := range paths {
		if checkTrusted(name) != nil {
			continue
		}
		_, err := s.Command(ctx, name, argv...)
		var exit *exec.ExitError
		switch {
		case err == nil:
			return "", nil
		case ctx.Err() != nil:
			return "", fmt.Errorf("no time left to ping %s; raise the check's timeout", target)
		case errors.As(err, &exit) && exit.ExitCode() == 1:
			return target + " does not answer a ping", nil
		case errors.As(err, &exit) && exit.ExitCode() == 2: // exit code 2 of ping(8): another error
			return "", fmt.Errorf("ping cannot send to %s", target)
		}
		return "", fmt.Errorf("cannot run ping: %w", err)
	}
	return "", errors.New("no ping program is owned by root")
}
