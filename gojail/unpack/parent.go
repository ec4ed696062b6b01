// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// linksMax is the kernel's limit of symbolic links in one path, path_resolution(7).
const linksMax = 40

// findParent returns the real path of a directory, without symbolic links, so that one directory has one path in this
// process: the maps of the unpacker have hashes of real paths as keys. With create, it creates missing directories. It
// remembers the last directory, because entries of one directory usually follow each other.
func (u *unpacker) findParent(name string, create bool) (string, error) {
	switch name {
	case "/":
		return "/", nil
	case u.parent.name:
		return u.parent.path, nil
	}
	current, rest := "/", strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == "" || part == "." {
			continue
		}
		if part == ".." { // only the target of a symbolic link has one: cleanName removes those of a name
			current = path.Dir(current)
			continue
		}
		next := path.Join(current, part)
		target, err := u.enterDirectory(current, next, create)
		if err != nil {
			return "", err
		}
		if target == "" {
			current = next
			continue
		}
		if links++; links > linksMax {
			return "", fmt.Errorf("too many symbolic links in %s", quoteName(name))
		}
		if strings.HasPrefix(target, "/") {
			current = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	u.parent.name, u.parent.path = name, current
	return current, nil
}

// enterDirectory returns the target of next if it is a symbolic link, and "" if it is a directory.
func (u *unpacker) enterDirectory(dir, next string, create bool) (target string, err error) {
	if err := checkPath(next); err != nil {
		return "", err
	}
	var st unix.Stat_t
	err = unix.Lstat(next, &st)
	if err == unix.ENOENT && create {
		return "", u.makeParent(dir, next)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", quoteName(next), err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "", nil
	case unix.S_IFLNK:
		return readLink(next)
	}
	return "", fmt.Errorf("%s is not a directory", quoteName(next))
}

// makeParent creates a directory that an archive implies.
func (u *unpacker) makeParent(dir, next string) error {
	if err := u.countName(); err != nil {
		return err
	}
	if err := u.keepTimes(dir); err != nil {
		return err
	}
	if err := makeDirectory(next, 0, 0, 0o755); err != nil {
		return fmt.Errorf("cannot create the directory %s: %w", quoteName(next), err)
	}
	delete(u.times, u.hashPath(next)) // those of an earlier directory of this path, which was replaced
	u.addUpper(next)
	return nil
}

// makeDirectory creates a directory with its owner and mode, also in a parent with a set-group-ID bit, which mkdir(2)
// passes on with the group.
func makeDirectory(full string, uid, gid int, mode uint32) error {
	if err := unix.Mkdir(full, 0o700); err != nil {
		return err
	}
	if err := unix.Lchown(full, uid, gid); err != nil {
		return err
	}
	return unix.Chmod(full, mode)
}

// readLink returns the target of a symbolic link.
func readLink(full string) (string, error) {
	buffer := make([]byte, pathMax+1)
	n, err := unix.Readlink(full, buffer)
	if err != nil {
		return "", fmt.Errorf("cannot read the symbolic link %s: %w", quoteName(full), err)
	}
	return string(buffer[:n]), nil
}
