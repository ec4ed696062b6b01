// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// parseFileTest parses check_file_test FLAGS FILES: each flag of test(1) for each file. With
// "-!" at least one of them must be false.
func parseFileTest(_ *Line, args []string) (assertion, error) {
	var flags, files []string
	not := false
	for _, arg := range args {
		switch {
		case arg == "-!":
			not = true
		case len(arg) == 2 && arg[0] == '-' && strings.Contains("abcdefghkprsuwxOGLSN", arg[1:]):
			flags = append(flags, arg)
		case strings.HasPrefix(arg, "-"):
			return nil, fmt.Errorf("unknown test %.20s", arg)
		default:
			files = append(files, arg)
		}
	}
	if len(flags) == 0 || len(files) == 0 {
		return nil, errors.New("write at least one test and one file")
	}
	return func(_ context.Context, s *System) (string, error) {
		for _, flag := range flags {
			for _, file := range files {
				if testFile(flag[1], file) {
					continue
				}
				if not {
					return "", nil
				}
				if has, err := s.isOfJob(file); err != nil {
					return "", err
				} else if !has {
					return fmt.Sprintf("test %s %s fails", flag, file), nil
				}
			}
		}
		if not {
			return fmt.Sprintf("test %s %s does not fail", strings.Join(flags, " "), strings.Join(files, " ")), nil
		}
		return "", nil
	}, nil
}

// types are the file types by flag of test(1).
var types = map[byte]uint32{'b': unix.S_IFBLK, 'c': unix.S_IFCHR, 'd': unix.S_IFDIR, 'f': unix.S_IFREG,
	'p': unix.S_IFIFO, 'S': unix.S_IFSOCK}

// modeBits are the mode bits by flag of test(1).
var modeBits = map[byte]uint32{'g': unix.S_ISGID, 'k': unix.S_ISVTX, 'u': unix.S_ISUID}

// rights are the access rights by flag of test(1).
var rights = map[byte]uint32{'r': unix.R_OK, 'w': unix.W_OK, 'x': unix.X_OK}

// testFile evaluates a flag of test(1).
func testFile(flag byte, file string) bool {
	var st unix.Stat_t
	if flag == 'h' || flag == 'L' {
		return unix.Lstat(file, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
	}
	if right := rights[flag]; right != 0 {
		return unix.Faccessat(unix.AT_FDCWD, file, right, unix.AT_EACCESS) == nil
	}
	if unix.Stat(file, &st) != nil {
		return false
	}
	switch flag {
	case 'a', 'e':
		return true
	case 's':
		return st.Size > 0
	case 'O':
		return int(st.Uid) == unix.Geteuid()
	case 'G':
		return int(st.Gid) == unix.Getegid()
	case 'N': // modified since it was last read
		return st.Mtim.Nano() >= st.Atim.Nano()
	}
	if kind := types[flag]; kind != 0 {
		return st.Mode&unix.S_IFMT == kind
	}
	return st.Mode&modeBits[flag] != 0
}
