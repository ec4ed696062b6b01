// SPDX-License-Identifier: Apache-2.0

// Package wholefile replaces a file atomically: a reader at any time, even after a crash, finds the old text or the new
// one. A temporary file that a killed writer leaves is reused by the next one, so concurrent writers of a file need a
// lock. The directory must belong to root, because a name beside the file is opened, without following symlinks or
// waiting for a FIFO.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Suffix is appended to the file's name while it is being written.
const Suffix = ".new"

// Write replaces the file at path, with the given mode whatever the umask is. A crash of the node may
// restore the old text.
func Write(path string, text []byte, mode fs.FileMode) error { return write(path, text, mode, false) }

// Save replaces the file as Write does, and returns when the text and the name are on the disk.
func Save(path string, text []byte, mode fs.FileMode) error {
	if err := write(path, text, mode, true); err != nil {
		return err
	}
	return Sync(filepath.Dir(path))
}

func write(path string, text []byte, mode fs.FileMode, sync bool) error {
	file, err := os.OpenFile(path+Suffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil && sync {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(path+Suffix, path)
	}
	if err != nil {
		os.Remove(path + Suffix) // if it stays, the next writer reuses it
	}
	return err
}

// Sync writes the changes of a directory's entries to the disk.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
