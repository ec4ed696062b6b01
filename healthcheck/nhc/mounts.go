// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mounting is the assertion of a check_fs_mount about each path.
type mounting struct {
	paths, automounted      []string
	sources, types, options []*match
}

// newMountParser returns the parser of check_fs_mount, and with "rw" or "ro" of its two short
// forms.
func newMountParser(access string) func(*Line, []string) (assertion, error) {
	return func(l *Line, args []string) (assertion, error) {
		m := &mounting{}
		var err error
		if len(args) > 0 && strings.HasPrefix(args[0], "/") {
			err = m.parseOldForm(args)
		} else {
			err = m.parse(l, args)
		}
		if err == nil && access != "" {
			err = addMatch(&m.options, "/(^|,)"+access+"(,|$)/")
		}
		if err == nil && len(m.paths)+len(m.automounted) == 0 {
			err = errors.New("a file system is missing")
		}
		if err == nil {
			err = m.dropTransient(l)
		}
		if len(m.automounted) > 0 {
			l.Domain = Storage
		}
		return m.checkMounts, err
	}
}

func addMatch(to *[]*match, text string) error {
	m, err := parseMatch(text)
	*to = append(*to, m)
	return err
}

// parseOldForm parses PATH [SOURCE [TYPE [OPTIONS]]].
func (m *mounting) parseOldForm(args []string) error {
	if err := checkArguments(args, 1, 4); err != nil {
		return err
	}
	m.paths = args[:1]
	for i, to := range []*[]*match{&m.sources, &m.types, &m.options} {
		if len(args) > i+1 && args[i+1] != "" {
			if err := addMatch(to, args[i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mounting) parse(l *Line, args []string) error {
	opts, rest, err := parseOptions(args, "0rE:F:O:e:f:o:s:t:")
	for _, o := range opts {
		switch o.letter {
		case '0':
			l.NonFatal = true
		case 'f':
			m.paths = append(m.paths, o.value)
		case 'F':
			m.automounted = append(m.automounted, o.value)
		case 's':
			err = errors.Join(err, addMatch(&m.sources, o.value))
		case 't':
			err = errors.Join(err, addMatch(&m.types, o.value))
		case 'o':
			err = errors.Join(err, addMatch(&m.options, o.value))
		case 'r', 'e', 'E':
			l.noteChange(o.letter)
		}
	}
	m.paths = append(m.paths, rest...)
	return err
}

// dropTransient leaves out mount points that come and go, and notes it.
func (m *mounting) dropTransient(l *Line) error {
	drop := func(path string) bool {
		text := explainTransient(path)
		l.Notes = appendText(l.Notes, text)
		return text != ""
	}
	m.paths, m.automounted = slices.DeleteFunc(slices.Clone(m.paths), drop), slices.DeleteFunc(m.automounted, drop)
	if len(m.paths)+len(m.automounted) > 0 {
		return nil
	}
	text := strings.Join(l.Notes, "; ")
	l.Notes = nil
	return errors.New(text)
}

// checkMounts compares the mount table with the assertion. A remark on one path does not hide the fault of another.
func (m *mounting) checkMounts(_ context.Context, s *System) (string, error) {
	for _, path := range m.automounted {
		_, _ = os.Stat(filepath.Join(path, "none/such")) // triggers an automount
	}
	table, err := s.readMounts()
	if err != nil {
		return "", err
	}
	var remark error
	for i, path := range slices.Concat(m.paths, m.automounted) {
		fault, err := m.checkMount(table, path, i >= len(m.paths))
		if fault != "" {
			return fault, nil
		}
		remark = cmp.Or(remark, err)
	}
	return "", remark
}

// checkMount compares one path. An automount that has nothing to do is no fault, unless the line triggers it (-F).
func (m *mounting) checkMount(table mountList, path string, triggered bool) (fault string, err error) {
	at, mounted := table.find(path)
	if !mounted {
		if point, idle := table.findAutomount(path); idle && !triggered {
			return "", Remark(fmt.Sprintf("%s is not in use below the automount %s; write -F in place of -f", path,
				point))
		}
		return path + " is not mounted", nil
	}
	for _, part := range []struct {
		what, is string
		want     []*match
	}{{"source", at.source, m.sources}, {"type", at.kind, m.types}, {"options", at.options, m.options}} {
		for _, want := range part.want {
			switch {
			case want.matchesField(part.is):
			case at.kind == autofs && !triggered:
				return "", Remark(path + " is an idle automount; write -F in place of -f")
			default:
				return fmt.Sprintf("%s of %s: %s instead of %s", part.what, path, decodeOctal(part.is), want), nil
			}
		}
	}
	if at.kind == autofs && triggered && at.isDirect() && len(m.types) == 0 {
		return path + " is an automount that mounts nothing", nil
	}
	return "", nil
}
