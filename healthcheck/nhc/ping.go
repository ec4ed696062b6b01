// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
)

var (
	host   = regexp.MustCompile(`^[A-Za-z0-9:][-A-Za-z0-9.:_%]*$`)
	number = regexp.MustCompile(`^[0-9]{1,6}(?:\.[0-9]{1,3})?$`)
)

// parsePing parses check_net_ping OPTIONS HOSTS: ping(8) to each host with one packet, a TTL of
// 2 and one second unless the options differ.
func parsePing(l *Line, args []string) (assertion, error) {
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
	l.obstacle = func(s *System) error {
		_, err := s.findPing()
		return err
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

// findPing returns the path of ping(8).
func (s *System) findPing() (string, error) {
	paths := s.pings
	if paths == nil {
		paths = []string{"/usr/bin/ping", "/bin/ping"}
	}
	for _, name := range paths {
		if checkRunnable(name) == nil {
			return name, nil
		}
	}
	return "", errors.New("no ping program is owned by root")
}

// pingHost runs ping(8) for one host.
func pingHost(ctx context.Context, s *System, argv []string) (string, error) {
	target := argv[len(argv)-1]
	name, err := s.findPing()
	if err != nil {
		return "", err
	}
	_, err = s.Command(ctx, name, argv...)
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
