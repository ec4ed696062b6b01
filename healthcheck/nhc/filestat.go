// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// statRule is one option of check_file_stat: a condition on each file.
type statRule struct {
	what string // text of the fault
	ok   func(s *System, st *unix.Stat_t) bool
}

// parseFileStat parses check_file_stat OPTIONS FILES. It applies to the files themselves, not
// to the targets of symbolic links.
func parseFileStat(_ *Line, args []string) (assertion, error) {
	opts, files, err := parseOptions(args, "D:G:M:N:O:T:U:d:g:m:n:o:t:u:")
	var rules []statRule
	for _, o := range opts {
		r, e := parseStatRule(o)
		rules, err = append(rules, r), errors.Join(err, e)
	}
	switch {
	case err != nil:
		return nil, errors.New(strings.SplitN(err.Error(), "\n", 2)[0])
	case len(files) == 0 || len(rules) == 0:
		return nil, errors.New("write at least one option and one file")
	}
	return func(_ context.Context, s *System) (string, error) {
		for _, file := range files {
			var st unix.Stat_t
			if err := unix.Lstat(file, &st); err != nil {
				if has, err := s.isOfJob(file); err != nil {
					return "", err
				} else if has {
					continue
				}
				return fmt.Sprintf("%s: %v", file, err), nil
			}
			for _, r := range rules {
				if !r.ok(s, &st) {
					return fmt.Sprintf("%s: %s", file, r.what), nil
				}
			}
		}
		return "", nil
	}, nil
}

// parseStatRule parses one option.
func parseStatRule(o option) (statRule, error) {
	switch o.letter {
	case 'm', 'M':
		return parseModeRule(o)
	case 'N', 'O', 'n', 'o':
		return parseAgeRule(o)
	case 'U':
		return statRule{"its owner is not " + o.value,
			func(s *System, st *unix.Stat_t) bool { return s.findAccount(st.Uid) == o.value }}, nil
	case 'G':
		return statRule{"its group is not " + o.value,
			func(s *System, st *unix.Stat_t) bool { return s.findGroup(st.Gid) == o.value }}, nil
	}
	want, err := strconv.ParseUint(o.value, 0, 64) // decimal, 0octal or 0xhex, as in bash
	if err != nil {
		err = newRefusal(o.value, "a number")
	}
	of, what := map[byte]func(*unix.Stat_t) uint64{
		'D': func(st *unix.Stat_t) uint64 { return st.Dev },
		'd': func(st *unix.Stat_t) uint64 { return st.Dev },
		't': func(st *unix.Stat_t) uint64 { return uint64(unix.Major(st.Rdev)) },
		'T': func(st *unix.Stat_t) uint64 { return uint64(unix.Minor(st.Rdev)) },
		'u': func(st *unix.Stat_t) uint64 { return uint64(st.Uid) },
		'g': func(st *unix.Stat_t) uint64 { return uint64(st.Gid) },
	}[o.letter], map[byte]string{'D': "device", 'd': "device", 't': "major number", 'T': "minor number", 'u': "uid",
		'g': "gid"}[o.letter]
	return statRule{fmt.Sprintf("its %s is not %s", what, o.value),
		func(_ *System, st *unix.Stat_t) bool { return of(st) == want }}, err
}

// parseModeRule parses a mode. A leading 0 is required, since bash would parse the mode as
// decimal without it.
func parseModeRule(o option) (statRule, error) {
	want, err := strconv.ParseUint(o.value, 8, 16)
	if err != nil || !strings.HasPrefix(o.value, "0") || want > 0o7777 {
		return statRule{}, newRefusal(o.value, "a mode such as 0644, with the 0")
	}
	if o.letter == 'm' {
		return statRule{"its mode is not " + o.value,
			func(_ *System, st *unix.Stat_t) bool { return uint64(st.Mode)&0o7777 == want }}, nil
	}
	return statRule{"its mode lacks some of " + o.value,
		func(_ *System, st *unix.Stat_t) bool { return uint64(st.Mode)&want == want }}, nil
}

// parseAgeRule parses "newer than so many seconds", which a file of exactly that age meets.
func parseAgeRule(o option) (statRule, error) {
	n, err := parseSeconds(o.value)
	changed := o.letter == 'N' || o.letter == 'O'
	newer := o.letter == 'N' || o.letter == 'n'
	what := map[byte]string{'N': "its ctime is older than %s s", 'O': "its ctime is not older than %s s",
		'n': "its mtime is older than %s s", 'o': "its mtime is not older than %s s"}[o.letter]
	return statRule{fmt.Sprintf(what, o.value), func(s *System, st *unix.Stat_t) bool {
		at := st.Mtim.Sec
		if changed {
			at = st.Ctim.Sec
		}
		return at >= s.Now().Add(-time.Duration(n)*time.Second).Unix() == newer
	}}, err
}
