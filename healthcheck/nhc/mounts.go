// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mount is a row of /proc/self/mounts, fstab(5).
type mount struct{ source, kind, options string }

// readMounts returns the mount table by mount point; the last mount on a path is the visible
// one.
func (s *System) readMounts() (map[string]mount, error) {
	text, err := os.ReadFile(filepath.Join(s.Proc, "self/mounts"))
	if err != nil {
		return nil, errors.New("cannot read the mount table")
	}
	all := map[string]mount{}
	for row := range strings.Lines(string(text)) {
		if f := strings.Fields(row); len(f) >= 4 {
			all[decodeOctal(f[1])] = mount{decodeOctal(f[0]), f[2], f[3]}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("cannot parse the mount table")
	}
	return all, nil
}

// decodeOctal undoes the kernel's escapes such as "\040" for a space.
func decodeOctal(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

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

// checkMounts compares the mount table with the assertion.
func (m *mounting) checkMounts(_ context.Context, s *System) (string, error) {
	for _, path := range m.automounted {
		_, _ = os.Stat(filepath.Join(path, "none/such")) // triggers an automount
	}
	all, err := s.readMounts()
	if err != nil {
		return "", err
	}
	for _, path := range append(m.paths, m.automounted...) {
		at, mounted := all[path]
		if !mounted {
			return path + " is not mounted", nil
		}
		for _, part := range []struct {
			what, is string
			want     []*match
		}{{"source", at.source, m.sources}, {"type", at.kind, m.types}, {"options", at.options, m.options}} {
			for _, want := range part.want {
				if !want.matches(part.is) {
					return fmt.Sprintf("%s of %s: %s instead of %s", part.what, path, part.is, want), nil
				}
			}
		}
	}
	return "", nil
}
