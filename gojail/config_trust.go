// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// configMax keeps a file that was named by mistake from filling memory.
const configMax = 1 << 20

// readTrusted reads a file that only root can have written, and tells which
// version it was. Ownership is read from the descriptor that the bytes come from.
func readTrusted(path string) ([]byte, FileIdentity, error) {
	var id FileIdentity
	if !filepath.IsAbs(path) {
		return nil, id, fmt.Errorf("%s: the configuration must be an absolute path", path)
	}
	if err := TrustedParents(path); err != nil {
		return nil, id, err
	}
	// A FIFO in the place of the file must not block the launch.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, id, fmt.Errorf("%s: cannot read the configuration: %w", path, cause(err))
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, id, fmt.Errorf("%s: cannot read the configuration: %w", path, err)
	}
	if err := trusted(path, &st, unix.S_IFREG); err != nil {
		return nil, id, err
	}
	data, err := io.ReadAll(io.LimitReader(f, configMax+1))
	if err != nil {
		return nil, id, fmt.Errorf("%s: cannot read the configuration: %w", path, cause(err))
	}
	if len(data) > configMax {
		return nil, id, fmt.Errorf("%s: the configuration is larger than %d bytes", path, configMax)
	}
	return data, identity(&st), nil
}

func identity(st *unix.Stat_t) FileIdentity {
	return FileIdentity{
		Dev: uint64(st.Dev), Ino: st.Ino, Size: st.Size,
		MtimeSec: st.Mtim.Sec, MtimeNsec: st.Mtim.Nsec,
		CtimeSec: st.Ctim.Sec, CtimeNsec: st.Ctim.Nsec,
	}
}

// TrustedParents refuses a path if anybody but root could replace a directory
// above it, including the directories that its symbolic links lead through.
func TrustedParents(path string) error {
	dirs, err := visited(path)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		var st unix.Stat_t
		if err := unix.Lstat(dir, &st); err != nil {
			return fmt.Errorf("%s: cannot look at the directory %s: %w", path, dir, err)
		}
		if err := trusted(dir, &st, unix.S_IFDIR); err != nil {
			return err
		}
	}
	return nil
}

// visited walks path as the kernel does and lists every directory that it looks
// a name up in. A path that ends early is no error: whoever opens it will see.
func visited(path string) ([]string, error) {
	var dirs []string
	cur, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		dirs = append(dirs, cur)
		next := filepath.Join(cur, name)
		target, err := os.Readlink(next)
		if err != nil { // no link
			cur = next
			if _, err := os.Lstat(next); err != nil {
				return dirs, nil
			}
			continue
		}
		if links++; links > 40 { // the kernel's own limit, path_resolution(7)
			return nil, fmt.Errorf("%s: too many symbolic links", path)
		}
		if filepath.IsAbs(target) {
			cur = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return dirs, nil
}

// trusted refuses what is not of the wanted type, not root's, or open to others.
func trusted(path string, st *unix.Stat_t, kind uint32) error {
	if st.Mode&unix.S_IFMT != kind {
		want := map[uint32]string{unix.S_IFREG: "regular file", unix.S_IFDIR: "directory"}[kind]
		return fmt.Errorf("%s: not a %s", path, want)
	}
	if st.Uid != 0 {
		return fmt.Errorf("%s: belongs to uid %d and not to root; run: chown root:root %s", path, st.Uid, path)
	}
	sticky := kind == unix.S_IFDIR && st.Mode&unix.S_ISVTX != 0
	if st.Mode&0o022 != 0 && !sticky {
		return fmt.Errorf("%s: others can write it (mode %04o); run: chmod go-w %s", path, st.Mode&0o7777, path)
	}
	return nil
}

// cause is the reason without the operation and path, which the caller names itself.
func cause(err error) error {
	if pe, ok := err.(*os.PathError); ok {
		return pe.Err
	}
	if le, ok := err.(*os.LinkError); ok {
		return le.Err
	}
	return err
}
