// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// read is os.ReadFile for the many small files of /proc and /sys, in half the calls.
func read(path string) ([]byte, error) { return readAt(unix.AT_FDCWD, path) }

// readAt is below a directory that is open.
func readAt(dir int, path string) ([]byte, error) {
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

// readOnce is readAt for a file that the kernel writes in one go, as /proc/PID/stat or
// those of /sys, and that fits into buffer: a page.
func readOnce(dir int, path string, buffer []byte) ([]byte, error) {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
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

// sysText is a file of /sys in one line.
func sysText(dir, name string) (string, bool) {
	var buffer [4096]byte
	text, err := readOnce(unix.AT_FDCWD, filepath.Join(dir, name), buffer[:])
	return strings.TrimSpace(string(text)), err == nil
}

func sysNumber(dir, name string) (int64, bool) {
	text, _ := sysText(dir, name)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

func matches(root, pattern string) []string {
	all, _ := filepath.Glob(filepath.Join(root, pattern))
	return all
}
