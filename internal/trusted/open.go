// SPDX-License-Identifier: Apache-2.0

// Package trusted reads files that only root can have written.
//
// Root code may use a file only if nobody else can write or replace it: the file and each directory above
// it, including those of symbolic links, belong to root and are not writable by others. A sticky
// directory such as /tmp may be writable.
//
// The package is not for files of users, nor for paths that a user names: a process that opens those must
// have the user's rights. Errors are one line with the path and the command that corrects it. It works
// with any kernel.
package trusted

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
)

// linksMax is the kernel's limit of symbolic links in a path, path_resolution(7).
const linksMax = 40

// Open opens a regular file that only root can have written, for reading. It opens each directory and each symbolic
// link on the way, and judges the opened files, so that nobody can exchange the path meanwhile. It calls inDir with the
// status of each directory on the way, which may refuse it; inDir may be nil.
func Open(path string, inDir func(*unix.Stat_t) error) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%s: must be an absolute path", path)
	}
	w := walk{path: path, inDir: inDir, dir: -1}
	defer func() { unix.Close(w.dir) }()
	if err := w.enterRoot(); err != nil {
		return nil, err
	}
	for rest := strings.Split(path, "/"); ; {
		for len(rest) > 0 && (rest[0] == "" || rest[0] == ".") {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return nil, fmt.Errorf("%s: not a regular file", path)
		}
		file, target, err := w.step(rest[0], len(rest) == 1)
		if file != nil || err != nil {
			return file, err
		}
		rest = append(strings.Split(target, "/"), rest[1:]...)
	}
}

// walk is the way to a file; dir is the directory that was opened last.
type walk struct {
	path  string
	inDir func(*unix.Stat_t) error
	dir   int
	name  string // path of dir, for messages
	links int
}

func (w *walk) enterRoot() error {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: cannot open /: %w", w.path, err)
	}
	return w.enter(fd, "/")
}

// enter makes an open directory the one in which the next name is looked up.
func (w *walk) enter(fd int, name string) error {
	unix.Close(w.dir)
	w.dir, w.name = fd, name
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	if err != nil {
		return fmt.Errorf("%s: cannot stat %s: %w", w.path, name, err)
	}
	if err := Check(name, &st, unix.S_IFDIR); err != nil {
		return err
	}
	if w.inDir != nil {
		return w.inDir(&st)
	}
	return nil
}

// step opens one name in the directory. If the name is that of a regular file, it returns the file; if it is that of a
// symbolic link, the target, which is to be looked up in w.dir.
func (w *walk) step(name string, last bool) (file *os.File, target string, err error) {
	full := filepath.Join(w.name, name)
	fail := func(err error) (*os.File, string, error) {
		return nil, "", fmt.Errorf("%s: cannot open %s: %w", w.path, full, oneline.Errno(err))
	}
	fd, err := unix.Openat(w.dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	defer func() { unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fail(err)
	}
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFLNK:
		target, err = w.follow(fd, full, &st)
		return nil, target, err
	case kind == unix.S_IFDIR:
		// O_DIRECTORY triggers an automount, which O_NOFOLLOW alone does not.
		dir, err := unix.Openat(w.dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return fail(err)
		}
		return nil, "", w.enter(dir, full)
	case !last:
		return fail(unix.ENOTDIR)
	}
	if err := Check(full, &st, unix.S_IFREG); err != nil {
		return nil, "", err
	}
	// By the descriptor: a pipe or a device that takes the name meanwhile is not opened.
	file, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return fail(err)
	}
	return file, "", nil
}

// follow returns the target of an open symbolic link. Its owner could replace it in a sticky directory.
func (w *walk) follow(fd int, full string, st *unix.Stat_t) (string, error) {
	if err := checkLink(full, st, 0); err != nil {
		return "", err
	}
	if w.links++; w.links > linksMax {
		return "", fmt.Errorf("%s: too many symbolic links", w.path)
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return "", fmt.Errorf("%s: cannot read the symbolic link %s: %w", w.path, full, err)
	}
	target := string(buf[:n])
	if filepath.IsAbs(target) {
		return target, w.enterRoot()
	}
	return target, nil
}
