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

// mounts is the mount table by mount point; the last one of a place is what is seen there.
func (s *System) mounts() (map[string]mount, error) {
	text, err := os.ReadFile(filepath.Join(s.Proc, "self/mounts"))
	if err != nil {
		return nil, errors.New("the mount table cannot be read")
	}
	all := map[string]mount{}
	for row := range strings.Lines(string(text)) {
		if f := strings.Fields(row); len(f) >= 4 {
			all[octal(f[1])] = mount{octal(f[0]), f[2], f[3]}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the mount table is not understood")
	}
	return all, nil
}

// octal undoes what the kernel makes of a space: "\040".
func octal(text string) string {
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

// mounting is what a check_fs_mount asserts of each path.
type mounting struct {
	paths, automounted      []string
	sources, types, options []*match
}

// mountKind is check_fs_mount, and with "rw" or "ro" its two short forms.
func mountKind(access string) func(*Line, []string) (look, error) {
	return func(l *Line, args []string) (look, error) {
		m := &mounting{}
		var err error
		if len(args) > 0 && strings.HasPrefix(args[0], "/") {
			err = m.old(args)
		} else {
			err = m.parse(l, args)
		}
		if err == nil && access != "" {
			err = add(&m.options, "/(^|,)"+access+"(,|$)/")
		}
		if err == nil && len(m.paths)+len(m.automounted) == 0 {
			err = errors.New("it names no file system")
		}
		if len(m.automounted) > 0 {
			l.Domain = Storage
		}
		return m.look, err
	}
}

func add(to *[]*match, text string) error {
	m, err := parseMatch(text)
	*to = append(*to, m)
	return err
}

// old is PATH [SOURCE [TYPE [OPTIONS]]].
func (m *mounting) old(args []string) error {
	if err := arguments(args, 1, 4); err != nil {
		return err
	}
	m.paths = args[:1]
	for i, to := range []*[]*match{&m.sources, &m.types, &m.options} {
		if len(args) > i+1 && args[i+1] != "" {
			if err := add(to, args[i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mounting) parse(l *Line, args []string) error {
	opts, rest, err := options(args, "0rE:F:O:e:f:o:s:t:")
	for _, o := range opts {
		switch o.letter {
		case '0':
			l.NonFatal = true
		case 'f':
			m.paths = append(m.paths, o.value)
		case 'F':
			m.automounted = append(m.automounted, o.value)
		case 's':
			err = errors.Join(err, add(&m.sources, o.value))
		case 't':
			err = errors.Join(err, add(&m.types, o.value))
		case 'o':
			err = errors.Join(err, add(&m.options, o.value))
		case 'r', 'e', 'E':
			l.changes(o.letter)
		}
	}
	m.paths = append(m.paths, rest...)
	return err
}

func (m *mounting) look(_ context.Context, s *System) (string, error) {
	for _, path := range m.automounted {
		_, _ = os.Stat(filepath.Join(path, "none/such")) // makes the automounter mount it
	}
	all, err := s.mounts()
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
				if !want.is(part.is) {
					return fmt.Sprintf("%s of %s: %s, and not %s", part.what, path, part.is, want), nil
				}
			}
		}
	}
	return "", nil
}
