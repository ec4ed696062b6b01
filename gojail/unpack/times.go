// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// times are the times of access and modification, as utimensat(2) takes them.
type times [2]unix.Timespec

// readTimes returns the times of an entry. If the archive has no time of access, it is that of modification.
func readTimes(access, modify time.Time) (t times, err error) {
	if access.IsZero() {
		access = modify
	}
	for i, at := range []time.Time{access, modify} {
		if t[i], err = unix.TimeToTimespec(at); err != nil {
			return t, fmt.Errorf("the time %s is out of range", at)
		}
	}
	return t, nil
}

// setTimes sets the times of a path without following a symbolic link.
func setTimes(full string, t times) error {
	return unix.UtimesNanoAt(unix.AT_FDCWD, full, t[:], unix.AT_SYMLINK_NOFOLLOW)
}

// keepTimes records, for restoreTimes, the times of a directory that is about to change, and of the directories above
// it. Those above are recorded so that restoreTimes finds the way to this one.
func (u *unpacker) keepTimes(dir string) error {
	for ; ; dir = path.Dir(dir) {
		hash := u.hashPath(dir)
		if _, known := u.times[hash]; known {
			return nil
		}
		var st unix.Stat_t
		if err := unix.Lstat(dir, &st); err != nil {
			return fmt.Errorf("cannot stat the directory %s: %w", quoteName(dir), err)
		}
		u.times[hash] = times{st.Atim, st.Mtim}
		if dir == "/" {
			return nil
		}
	}
}

// restoreTimes sets the recorded times of a directory and of those below it. It finds them by a walk of the tree,
// because the record has only hashes of their paths: the paths of a hostile archive would take gigabytes. So only real
// directories get times, and not the target of a symbolic link that has replaced one.
func (u *unpacker) restoreTimes(dir string) error {
	t, known := u.times[u.hashPath(dir)]
	if !known {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return fmt.Errorf("cannot stat %s: %w", quoteName(dir), err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil // another file has replaced the directory
	}
	if err := u.restoreTimesIn(dir); err != nil {
		return err
	}
	if err := setTimes(dir, t); err != nil { // last, because reading a directory changes its time of access
		return fmt.Errorf("cannot set the times of the directory %s: %w", quoteName(dir), err)
	}
	return nil
}

// namesAtOnce is the limit of names of a directory that are in memory at once.
const namesAtOnce = 1000

// restoreTimesIn calls restoreTimes for each name in a directory, of which it reads a part at a time.
func (u *unpacker) restoreTimesIn(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("cannot read the directory %s: %w", quoteName(dir), errors.Unwrap(err))
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(namesAtOnce)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the directory %s: %w", quoteName(dir), err)
		}
		for _, name := range names {
			if err := u.restoreTimes(path.Join(dir, name)); err != nil {
				return err
			}
		}
	}
}
