// SPDX-License-Identifier: Apache-2.0

// Package wholefile replaces a file so that whoever reads it, at whatever moment and
// after whatever crash, finds the text of before or the new one. What a writer that
// was killed leaves beside the file is used up by the next one; so two writers of a
// file at once need a lock of their own. The directory must be root's: a name beside
// the file is opened, though no symlink is followed and no FIFO waited for.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Suffix of the file's name while it is being written.
const Suffix = ".new"

// Write makes path hold text, with that mode whatever the umask is. A crash of the
// node may bring the text of before back.
func Write(path string, text []byte, mode fs.FileMode) error { return write(path, text, mode, false) }

// Save is Write that returns when the text and the name are on the disk.
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
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(path+Suffix, path)
	}
	if err != nil {
		os.Remove(path + Suffix) // if it stays, the next writer uses it up
	}
	return err
}

// Sync has the names in a directory on the disk, those that are gone as well.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
