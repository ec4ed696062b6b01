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

// search applies match strings to lines: each one must match some line, and those with "!" no
// line.
type search struct {
	want  []*match
	found []bool
	bad   *match
}

// newSearch returns a search for match strings.
func newSearch(want []*match) *search { return &search{want: want, found: make([]bool, len(want))} }

// parseMatches parses match strings.
func parseMatches(texts []string) (all []*match, err error) {
	for _, text := range texts {
		if err := addMatch(&all, text); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addLine processes the next line, and reports whether later lines can still change the result.
func (s *search) addLine(text string) (goOn bool) {
	for i, m := range s.want {
		switch {
		case m.not && m.matchesText(text):
			s.bad = m
			return false
		case m.not:
			goOn = true
		case !s.found[i]:
			s.found[i] = m.matches(text)
			goOn = goOn || !s.found[i]
		}
	}
	return goOn
}

// addEnd processes the end of a command's output. Like NHC it is a line without a text, so that "*" and /^$/ match a
// command that prints nothing. It is none for match strings with "!", which no output could meet.
func (s *search) addEnd() {
	for i, m := range s.want {
		s.found[i] = s.found[i] || !m.not && m.matches("")
	}
}

// describeFault returns the match string that was not found, or was found in spite of its "!",
// in the named item; "" if there is none.
func (s *search) describeFault(where string) string {
	if s.bad != nil {
		return fmt.Sprintf("%s has a line that matches %s", where, strings.TrimPrefix(s.bad.text, "!"))
	}
	for i, m := range s.want {
		if !m.not && !s.found[i] {
			return fmt.Sprintf("%s has no line that matches %s", where, m)
		}
	}
	return ""
}

// parseFileContents parses check_file_contents FILE MATCHES. Lines are compared without
// surrounding spaces and the layer of backslashes that bash's read removes.
func parseFileContents(_ *Line, args []string) (assertion, error) {
	if len(args) < 2 {
		return nil, errors.New("write a file and at least one match string")
	}
	file := args[0]
	want, err := parseMatches(args[1:])
	return func(ctx context.Context, system *System) (string, error) {
		f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != nil {
			if has, err := system.isOfJob(file); has || err != nil {
				return "", err
			}
			return fmt.Sprintf("cannot read %s: %v", file, errors.Unwrap(err)), nil
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return "", fmt.Errorf("%s is not a regular file", file)
		}
		s := newSearch(want)
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		joined := ""
		for lines.Scan() && ctx.Err() == nil {
			text, more := unescape(lines.Text())
			if joined += text; more {
				continue
			}
			if !s.addLine(strings.Trim(joined, " \t")) {
				break
			}
			joined = ""
		}
		if joined != "" { // the last line ends with a backslash
			s.addLine(strings.Trim(joined, " \t"))
		}
		if err := errors.Join(lines.Err(), ctx.Err()); err != nil {
			return "", fmt.Errorf("cannot read %s to its end: %w", file, err)
		}
		return s.describeFault(file), nil
	}, err
}
