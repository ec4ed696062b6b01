// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// readFile is os.ReadFile for the many small files of /proc and /sys, with half the system
// calls.
func readFile(path string) ([]byte, error) { return readFileAt(unix.AT_FDCWD, path) }

// readFileAt reads a file relative to an open directory.
func readFileAt(dir int, path string) ([]byte, error) {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	text := make([]byte, 0, 1024)
	for {
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
		n, err := unix.Read(fd, text[len(text):cap(text)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return text, nil
		default:
			text = text[:len(text)+n]
		}
	}
}

// readPage reads a file that the kernel writes at once and that fits into buffer, one page:
// /proc/PID/stat and the files of /sys.
func readPage(path string, buffer []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Read(fd, buffer)
		if err == unix.EINTR {
			continue
		}
		return buffer[:max(n, 0)], err
	}
}

// readSysText returns a file of /sys as one line.
func readSysText(dir, name string) (string, bool) {
	var buffer [4096]byte
	text, err := readPage(filepath.Join(dir, name), buffer[:])
	return strings.TrimSpace(string(text)), err == nil
}

// readSysNumber returns a file of /sys as a number.
func readSysNumber(dir, name string) (int64, bool) {
	text, _ := readSysText(dir, name)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// findMatches returns the sorted paths that match a pattern below root.
func findMatches(root, pattern string) []string {
	all, _ := filepath.Glob(filepath.Join(root, pattern))
	return all
}
