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

// Without a -t a command has this long.
const commandTime = 5 * time.Second

// commandOutput is check_cmd_output [-t S] [-r CODE] [-m MATCH]... {-e 'COMMAND' | COMMAND}.
func commandOutput(_ *Line, args []string) (look, error) {
	return parseProgram(args, "e:m:r:t:")
}

// commandStatus is check_cmd_status [-t S] -r CODE COMMAND.
func commandStatus(_ *Line, args []string) (look, error) {
	return parseProgram(args, "r:t:")
}

func parseProgram(args []string, letters string) (look, error) {
	opts, rest, err := options(args, letters)
	p := &program{argv: rest, timeout: commandTime}
	for _, o := range opts {
		var e error
		switch o.letter {
		case 'e':
			p.argv = strings.Fields(o.value)
		case 'm':
			e = add(&p.want, o.value)
		case 'r':
			if p.code, e = strconv.Atoi(o.value); e != nil || p.code < 0 || p.code > 255 {
				e = refuse(o.value, "an exit code")
			}
		case 't':
			var s int64
			s, e = seconds(o.value)
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
		return nil, errors.New("it names no command")
	case !strings.HasPrefix(p.argv[0], "/"):
		return nil, refuse(p.argv[0], "the absolute path of the command")
	}
	return p.look, nil
}

func (p *program) look(ctx context.Context, s *System) (string, error) {
	name := p.argv[0]
	if err := trustedProgram(name); err != nil {
		return "", err
	}
	own, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	out, err := s.Command(own, name, p.argv[1:]...)
	var exit *exec.ExitError
	code := 0
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s was not given the %v that it may take; raise the check's timeout", name, p.timeout)
	case own.Err() != nil:
		return fmt.Sprintf("%s does not end within %v", name, p.timeout), nil
	case errors.As(err, &exit):
		code = exit.ExitCode() // -1: by a signal
	case err != nil:
		return "", fmt.Errorf("%s cannot be run: %w", name, err)
	}
	search := newSearch(p.want)
	for row := range strings.Lines(string(out)) {
		if !search.line(strings.TrimSuffix(row, "\n")) {
			break
		}
	}
	switch {
	case search.bad != nil:
		return search.fault("the output of " + name), nil
	case code != p.code:
		return fmt.Sprintf("%s ends with code %d, and not %d", name, code, p.code), nil
	}
	return search.fault("the output of " + name), nil
}

// trustedProgram refuses what others than root could have put there.
func trustedProgram(path string) error {
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

// ping is check_net_ping OPTIONS HOSTS: ping(8), each with one packet, a TTL of 2 and one second unless it says otherwise.
func ping(_ *Line, args []string) (look, error) {
	opts, targets, err := options(args, "I:W:c:i:s:t:w:")
	value := map[byte]string{'c': "1", 't': "2", 'w': "1"}
	for _, o := range opts {
		if value[o.letter] = o.value; !number.MatchString(o.value) && (o.letter != 'I' || !host.MatchString(o.value)) {
			err = errors.Join(err, refuse(o.value, "a number"))
		}
	}
	for _, target := range targets {
		if !host.MatchString(target) {
			err = errors.Join(err, refuse(target, "a host"))
		}
	}
	if len(targets) == 0 && err == nil {
		err = errors.New("it names no host")
	}
	argv := []string{"-q", "-n"}
	for _, letter := range []byte("IistcwW") {
		if value[letter] != "" {
			argv = append(argv, "-"+string(letter), value[letter])
		}
	}
	return func(ctx context.Context, s *System) (string, error) {
		for _, target := range targets {
			if fault, err := pingOne(ctx, s, append(argv, target)); fault != "" || err != nil {
				return fault, err
			}
		}
		return "", nil
	}, err
}

func pingOne(ctx context.Context, s *System, argv []string) (string, error) {
	target := argv[len(argv)-1]
	paths := s.pings
	if paths == nil {
		paths = []string{"/usr/bin/ping", "/bin/ping"}
	}
	for _, name := range paths {
		if trustedProgram(name) != nil {
			continue
		}
		_, err := s.Command(ctx, name, argv...)
		var exit *exec.ExitError
		switch {
		case err == nil:
			return "", nil
		case ctx.Err() != nil:
			return "", fmt.Errorf("there was no time left to ping %s; raise the check's timeout", target)
		case errors.As(err, &exit) && exit.ExitCode() == 1:
			return target + " does not answer a ping", nil
		case errors.As(err, &exit) && exit.ExitCode() == 2: // it could not even try
			return "", fmt.Errorf("ping cannot be used for %s", target)
		}
		return "", fmt.Errorf("ping cannot be run: %w", err)
	}
	return "", errors.New("there is no ping that is root's")
}
