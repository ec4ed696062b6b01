// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// search looks for match strings in lines: each one has to match some line, and
// those with "!" no line.
type search struct {
	want  []*match
	found []bool
	bad   *match
}

func newSearch(want []*match) *search { return &search{want: want, found: make([]bool, len(want))} }

func parseMatches(texts []string) (all []*match, err error) {
	for _, text := range texts {
		if err := add(&all, text); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// line takes the next line, and tells whether later ones can still matter.
func (s *search) line(text string) (goOn bool) {
	for i, m := range s.want {
		switch {
		case m.not && m.plain(text):
			s.bad = m
			return false
		case m.not:
			goOn = true
		case !s.found[i]:
			s.found[i] = m.is(text)
			goOn = goOn || !s.found[i]
		}
	}
	return goOn
}

// fault is what was not found, or found against the rules, in something of that name.
func (s *search) fault(where string) string {
	if s.bad != nil {
		return fmt.Sprintf("%s has a line like %s", where, strings.TrimPrefix(s.bad.text, "!"))
	}
	for i, m := range s.want {
		if !m.not && !s.found[i] {
			return fmt.Sprintf("%s has no line like %s", where, m)
		}
	}
	return ""
}

// fileContents is check_file_contents FILE MATCHES. Lines are without the spaces and
// the layer of backslashes that bash's read takes.
func fileContents(_ *Line, args []string) (look, error) {
	if len(args) < 2 {
		return nil, errors.New("write a file and at least one match string")
	}
	file := args[0]
	want, err := parseMatches(args[1:])
	return func(ctx context.Context, _ *System) (string, error) {
		f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != nil {
			return fmt.Sprintf("%s cannot be read: %v", file, errors.Unwrap(err)), nil
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return "", fmt.Errorf("%s is no regular file", file)
		}
		s := newSearch(want)
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() && ctx.Err() == nil {
			text, _ := unescape(strings.Trim(lines.Text(), " \t"))
			if !s.line(text) {
				break
			}
		}
		if err := errors.Join(lines.Err(), ctx.Err()); err != nil {
			return "", fmt.Errorf("%s cannot be read to its end: %w", file, err)
		}
		return s.fault(file), nil
	}, err
}
