// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Names of the OCI image specification, layer.md.
const (
	whiteoutPrefix = ".wh."
	opaqueName     = ".wh..wh..opq"
	aufsPrefix     = ".wh..wh."
)

// isOfAufs reports whether a name is one of aufs' own files, such as .wh..wh.plnk, or lies in one.
func isOfAufs(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, aufsPrefix) && part != opaqueName {
			return true
		}
	}
	return false
}

// applyWhiteout removes files of lower layers: one name, or all names of a directory. Files of this layer stay, in
// whatever order its entries are (OCI image specification, layer.md).
func (u *unpacker) applyWhiteout(dir, base string) error {
	if err := u.keepTimes(dir); err != nil {
		return err
	}
	if base == opaqueName {
		return u.removeLowerIn(dir)
	}
	name := base[len(whiteoutPrefix):]
	// path.Join would make the directory itself, or the one above it, of these names.
	if name == "" || name == "." || name == ".." {
		return errors.New("the whiteout names no file")
	}
	return u.removeLower(path.Join(dir, name))
}

// removeLowerIn removes files of lower layers from a directory, and from directories in it that have files of this
// layer. It lists a directory once: any later file in it belongs to this layer, and a small layer may have a million
// whiteouts of a directory with a million files.
func (u *unpacker) removeLowerIn(dir string) error {
	hash := u.hashPath(dir)
	if _, ok := u.emptied[hash]; ok {
		return nil
	}
	u.emptied[hash] = struct{}{}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("cannot read the directory %s: %w", quoteName(dir), err)
	}
	names, err := d.Readdirnames(-1)
	d.Close()
	for ; err == nil && len(names) > 0; names = names[1:] {
		err = u.removeLower(path.Join(dir, names[0]))
	}
	return err
}

// removeLower removes a path of a lower layer. If the path is a directory that also has files of this layer,
// removeLower removes only the rest.
func (u *unpacker) removeLower(full string) error {
	if !u.isUpper(full) {
		return u.removeExisting(full)
	}
	var st unix.Stat_t
	if err := unix.Lstat(full, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil // the layer's own file
	}
	if err := u.keepTimes(full); err != nil {
		return err
	}
	return u.removeLowerIn(full)
}

func (u *unpacker) hashPath(full string) uint64 { return maphash.String(u.seed, full) }

// addUpper records a path of this layer and the directories above it. Without whiteouts nothing reads the record.
func (u *unpacker) addUpper(full string) {
	if !u.policy.Whiteouts {
		return
	}
	for ; full != "/" && !u.isUpper(full); full = path.Dir(full) {
		u.upper[u.hashPath(full)] = struct{}{}
	}
}

// isUpper reports whether this layer has brought a path, or something below it.
func (u *unpacker) isUpper(full string) bool {
	_, ok := u.upper[u.hashPath(full)]
	return ok
}
