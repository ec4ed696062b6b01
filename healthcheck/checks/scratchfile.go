// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// openScratchFile creates a file without a name (O_TMPFILE), which disappears when this process
// ends. NFS and some other file systems do not support that, and get a file with a name.
func openScratchFile(dir, node string) (f *os.File, remove func(), err error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), dir), func() {}, nil
	}
	return createScratchFile(dir, node)
}

// leftoverAge is the age from which a file is no longer that of a run.
const leftoverAge = time.Hour

// createScratchFile creates a file with one name for each node, so that runs which were killed on storage that did not
// answer leave one file at most, and a later run removes it. If the name is taken, perhaps by another user, a random
// name serves. Neither opens an existing file (O_EXCL): others may be able to write to the directory.
func createScratchFile(dir, node string) (f *os.File, remove func(), err error) {
	name := filepath.Join(dir, ".gojail-healthcheck-"+node)
	f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if f, err = os.CreateTemp(dir, filepath.Base(name)+"-*"); err == nil {
			removeLeftover(name, f)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return f, func() { os.Remove(f.Name()) }, nil
}

// removeLeftover removes the file of a killed run: a regular one that is old, and of the owner that a new file has
// there, whom a server may have put in the place of root.
func removeLeftover(name string, own *os.File) {
	var old, created unix.Stat_t
	if unix.Lstat(name, &old) != nil || unix.Fstat(int(own.Fd()), &created) != nil {
		return
	}
	age := time.Since(time.Unix(old.Mtim.Unix()))
	if old.Mode&unix.S_IFMT == unix.S_IFREG && old.Uid == created.Uid && age > leftoverAge {
		os.Remove(name)
	}
}
