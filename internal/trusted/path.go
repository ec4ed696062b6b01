// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
)

// Parents fails if another user than root could replace a directory above a path, including the
// directories of its symbolic links.
func Parents(path string) error { return ParentsOf(path, 0) }

// ParentsOf fails as Parents does, but directories may also belong to the given user.
func ParentsOf(path string, owner uint32) error {
	dirs, err := listVisited(path, owner)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		var st unix.Stat_t
		if err := unix.Lstat(dir, &st); err != nil {
			return fmt.Errorf("%s: cannot stat the directory %s: %w", path, dir, err)
		}
		if st.Uid == owner {
			st.Uid = 0
		}
		if err := Check(dir, &st, unix.S_IFDIR); err != nil {
			return err
		}
	}
	return nil
}

// listVisited walks path as the kernel does, and returns every directory in which it looks up a name. It fails for a
// symbolic link that belongs neither to root nor to the owner: its user could replace it in a sticky directory. A path
// that ends early is no error here; opening it will fail.
func listVisited(path string, owner uint32) (dirs []string, err error) {
	err = rootpath.Follow(path, func(dir, name string) (string, error) {
		dirs = append(dirs, dir)
		next := filepath.Join(dir, name)
		var st unix.Stat_t
		if err := unix.Lstat(next, &st); err != nil {
			return "", io.EOF
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			return "", nil
		}
		if err := checkLink(next, &st, owner); err != nil {
			return "", err
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", fmt.Errorf("%s: cannot read the symbolic link %s: %w", path, next, oneline.Errno(err))
		}
		return target, nil
	})
	switch err {
	case nil, io.EOF:
		return dirs, nil
	case unix.ELOOP:
		return nil, fmt.Errorf("%s: too many symbolic links", path)
	}
	return nil, err
}

// checkLink fails if a symbolic link belongs neither to root nor to the owner.
func checkLink(path string, st *unix.Stat_t, owner uint32) error {
	if st.Uid != 0 && st.Uid != owner {
		if IsPerson(st.Uid) {
			return newFault(path, "write a path that leads through no user's link or directory",
				"is a symbolic link of uid %d, a user, and not of root", st.Uid)
		}
		return newFault(path, "run: chown -h root:root "+path, "is a symbolic link of uid %d and not of root", st.Uid)
	}
	return nil
}

// Fault is the error about a file that others than root may write or replace.
type Fault struct {
	Path, Found string
	Remedy      string // "": the caller knows better
}

func newFault(path, remedy, format string, args ...any) error {
	return &Fault{path, fmt.Sprintf(format, args...), remedy}
}

func (f *Fault) Error() string {
	if f.Remedy == "" {
		return f.Path + ": " + f.Found
	}
	return f.Path + ": " + f.Found + "; " + f.Remedy
}

// IsPerson reports whether a uid is a person's (login.defs(5)), whose files root must not take over. 65534 is not: it
// is nobody, to whom storage may map root.
func IsPerson(uid uint32) bool { return uid >= 1000 && uid != 65534 }

// Check fails if a file is not of the given type (unix.S_IFREG or S_IFDIR), does not belong to root, or
// is writable by others. It uses only st.
func Check(path string, st *unix.Stat_t, kind uint32) error {
	if st.Mode&unix.S_IFMT != kind {
		want := map[uint32]string{unix.S_IFREG: "regular file", unix.S_IFDIR: "directory"}[kind]
		return newFault(path, "", "not a %s", want)
	}
	if IsPerson(st.Uid) {
		remedy :=
			fmt.Sprintf("the user may have it open; replace it by a copy: cp %[1]s %[1]s.new && mv -f %[1]s.new %[1]s",
				path)
		if kind == unix.S_IFDIR {
			remedy = "do not take it from the user; choose a path whose directories all belong to root"
		}
		return newFault(path, remedy, "belongs to uid %d, a user, and not to root", st.Uid)
	}
	if st.Uid != 0 {
		return newFault(path, "run: chown root:root "+path, "belongs to uid %d and not to root", st.Uid)
	}
	sticky := kind == unix.S_IFDIR && st.Mode&unix.S_ISVTX != 0
	if st.Mode&0o022 != 0 && !sticky {
		return newFault(path, "run: chmod go-w "+path, "is writable by others (mode %04o)", st.Mode&0o7777)
	}
	return nil
}
