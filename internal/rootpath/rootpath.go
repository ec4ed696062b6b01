// SPDX-License-Identifier: Apache-2.0

// Package rootpath resolves paths inside a root to which others may write, by openat2(2) (Linux 5.6) and never by their
// text.
package rootpath

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/oneline"
)

// CheckClean requires a path that every reader interprets in the same way: absolute, without "..", "//",
// a trailing slash, or unprintable characters.
func CheckClean(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("the path is empty")
	case !filepath.IsAbs(path):
		return fmt.Errorf("%q: must be an absolute path", path)
	case filepath.Clean(path) != path:
		return fmt.Errorf("%q: write it as %q", path, filepath.Clean(path))
	case path == "/":
		return fmt.Errorf(`"/" is not allowed here`)
	case len(path) >= contract.PathMax:
		return fmt.Errorf("%.40q...: longer than %d bytes", path, contract.PathMax-1)
	case oneline.Printable(path) != path:
		return fmt.Errorf("%q: contains an unprintable character", path)
	}
	return nil
}

// InRoot are the flags that resolve a path inside a root.
const InRoot = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS

// OpenBeneath opens path below dir as a path descriptor (O_PATH).
func OpenBeneath(dir int, path string, resolve uint64) (int, error) {
	return Open(dir, path, unix.O_PATH, resolve)
}

// OpenInRoot opens a path as a process with that root would.
func OpenInRoot(root int, path string, flags uint64) (int, error) {
	return Open(root, path, flags, InRoot)
}

// Open opens path below dir, unix.AT_FDCWD for the current one, with openat2(2).
func Open(dir int, path string, flags, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve}
	fd, err := -1, error(unix.EAGAIN)
	// The kernel returns EAGAIN when a rename or a mount happened meanwhile, anywhere.
	for try := 0; try < 100 && (err == unix.EAGAIN || err == unix.EINTR); try++ {
		fd, err = unix.Openat2(dir, path, &how)
	}
	if err == unix.ENOSYS {
		err = OldKernel{unix.ENOSYS}
	}
	return fd, err
}

// OldKernel is the error of a system call that this kernel lacks.
type OldKernel struct{ Errno unix.Errno }

func (e OldKernel) Error() string { return e.Errno.Error() + ": Linux 5.12 or later is required" }

func (e OldKernel) Unwrap() error { return e.Errno }

// Exists reports whether a path exists.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// OpenDirectory opens the directory name in dir for reading.
func OpenDirectory(dir int, name string, resolve uint64) (*os.File, error) {
	fd, err := Open(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, resolve)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// ReadLink returns the absolute path that a symbolic link below root names, or "" if the path is not a symbolic link.
func ReadLink(root int, path string) string {
	dir, err := OpenBeneath(root, filepath.Dir(path), InRoot)
	if err != nil {
		return ""
	}
	defer unix.Close(dir)
	to := make([]byte, contract.PathMax)
	n, err := unix.Readlinkat(dir, filepath.Base(path), to)
	if err != nil {
		return ""
	}
	if target := string(to[:n]); filepath.IsAbs(target) {
		return filepath.Clean(target)
	}
	return filepath.Join(filepath.Dir(path), string(to[:n]))
}

// OpenFileInRoot opens a regular file for reading, as a process with that root would. It opens a path descriptor first,
// so that a device or a pipe is never opened.
func OpenFileInRoot(root int, path string) (*os.File, error) {
	fd, err := OpenInRoot(root, path, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("not a regular file")
	}
	return ReopenFile(fd, path)
}

// ReopenFile opens the regular file of a path descriptor for reading. It fails with EAGAIN if a process of the file's
// owner has a lease on it: open(2) would wait until the lease is broken, 45 seconds by default, and as often as the
// owner likes (F_SETLEASE).
func ReopenFile(at int, name string) (*os.File, error) {
	fd, err := -1, error(unix.EINTR)
	for err == unix.EINTR {
		fd, err = unix.Open(fmt.Sprintf("/proc/self/fd/%d", at),
			unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// PathOf returns the path of an open file, as seen from the root of its namespace: that of a removed file or of one
// outside this process's root is none that can be opened.
func PathOf(fd int) (string, error) {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return path, oneline.Cause(err)
}

// OfDescriptor returns the path of an open file that is to be mounted.
func OfDescriptor(fd int, asked string) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", fmt.Errorf("%s: %w", asked, err)
	}
	path, err := PathOf(fd)
	if err != nil {
		return "", fmt.Errorf("%s: %w", asked, oneline.Errno(err))
	}
	if st.Nlink == 0 || !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("%s: was deleted", asked)
	}
	if err := CheckClean(path); err != nil {
		return "", fmt.Errorf("%s leads to a path that cannot be mounted: %w", asked, err)
	}
	return path, nil
}
