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

// statRule is one option of check_file_stat: what must be so of each file.
type statRule struct {
	what string // for the fault
	ok   func(s *System, st *unix.Stat_t) bool
}

// fileStat is check_file_stat OPTIONS FILES, of the files themselves and not of what symbolic links lead to.
func fileStat(_ *Line, args []string) (look, error) {
	opts, files, err := options(args, "D:G:M:N:O:T:U:d:g:m:n:o:t:u:")
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

func parseStatRule(o option) (statRule, error) {
	switch o.letter {
	case 'm', 'M':
		return modeRule(o)
	case 'N', 'O', 'n', 'o':
		return ageRule(o)
	case 'U':
		return statRule{"its owner is not " + o.value, func(s *System, st *unix.Stat_t) bool { return s.account(st.Uid) == o.value }}, nil
	case 'G':
		return statRule{"its group is not " + o.value, func(s *System, st *unix.Stat_t) bool { return s.group(st.Gid) == o.value }}, nil
	}
	want, err := strconv.ParseUint(o.value, 0, 64) // decimal, 0octal or 0xhex, as in bash
	if err != nil {
		err = refuse(o.value, "a number")
	}
	of, what := map[byte]func(*unix.Stat_t) uint64{
		'D': func(st *unix.Stat_t) uint64 { return st.Dev },
		'd': func(st *unix.Stat_t) uint64 { return st.Dev },
		't': func(st *unix.Stat_t) uint64 { return uint64(unix.Major(st.Rdev)) },
		'T': func(st *unix.Stat_t) uint64 { return uint64(unix.Minor(st.Rdev)) },
		'u': func(st *unix.Stat_t) uint64 { return uint64(st.Uid) },
		'g': func(st *unix.Stat_t) uint64 { return uint64(st.Gid) },
	}[o.letter], map[byte]string{'D': "device", 'd': "device", 't': "major number", 'T': "minor number", 'u': "uid", 'g': "gid"}[o.letter]
	return statRule{fmt.Sprintf("its %s is not %s", what, o.value), func(_ *System, st *unix.Stat_t) bool { return of(st) == want }}, err
}

// modeRule wants a 0 before the mode: bash takes it for decimal without.
func modeRule(o option) (statRule, error) {
	want, err := strconv.ParseUint(o.value, 8, 16)
	if err != nil || !strings.HasPrefix(o.value, "0") || want > 0o7777 {
		return statRule{}, refuse(o.value, "a mode such as 0644, with the 0")
	}
	if o.letter == 'm' {
		return statRule{"its mode is not " + o.value, func(_ *System, st *unix.Stat_t) bool { return uint64(st.Mode)&0o7777 == want }}, nil
	}
	return statRule{"its mode lacks some of " + o.value, func(_ *System, st *unix.Stat_t) bool { return uint64(st.Mode)&want == want }}, nil
}

// ageRule: "newer than so many seconds", for which exactly that old is new enough.
func ageRule(o option) (statRule, error) {
	n, err := seconds(o.value)
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
