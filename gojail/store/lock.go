// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
)

// lockTimeout is the timeout for the lock of a jail. A change takes milliseconds unless the storage is slow.
const lockTimeout = 30 * time.Second

// holder describes the process that holds a lock in the store.
type holder struct {
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

func (h holder) String() string {
	if h.Host == "" {
		return "a process that has not written its name yet"
	}
	return oneline.Printable(fmt.Sprintf("%q, process %d on %s, since %s", h.Command, h.PID, h.Host,
		h.Since.Format(time.DateTime)))
}

// newHolder describes this process.
func newHolder() holder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return holder{host, os.Getpid(), strings.Join(os.Args, " "), time.Now().Round(time.Second)}
}

// withLock calls do under the jail's lock. Then it removes the work items of killed commands.
func (j *Jail) withLock(ctx context.Context, do func() error) error {
	orphans, err := j.holdLock(ctx, do)
	for _, orphan := range orphans {
		if removeErr := orphan.Remove(); err == nil && removeErr != nil {
			err = fmt.Errorf("it is done, but what a killed command left cannot be removed: %w", removeErr)
		}
	}
	return err
}

// holdLock calls do under the jail's lock, and returns the work items of killed commands.
func (j *Jail) holdLock(ctx context.Context, do func() error) (orphans []*Work, err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	lock, err := filelock.Wait(ctx, j.path(lockFile))
	if err != nil {
		return nil, explainLock(j.path(lockFile), err)
	}
	defer lock.Close()
	if err := j.refreshAttributes(); err != nil {
		return nil, err
	}
	if err := writeHolder(lock); err != nil {
		return nil, err
	}
	if orphans, err = j.claimOrphans(); err != nil {
		return orphans, err
	}
	return orphans, do()
}

// refreshAttributes makes an NFS client ask the server for the attributes of the jail's directories, from which the
// client sees that its cache of their names is out of date. Otherwise a change could act on a current version of up to
// a minute ago, before another node switched.
func (j *Jail) refreshAttributes() error {
	for _, dir := range []string{j.dir, j.path(versionsDir), j.path(recordsDir), j.path(workDir)} {
		if _, err := statServer(dir); err != nil && err != unix.ENOENT {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// statServer returns the attributes of a directory that its server has now.
func statServer(dir string) (st unix.Statx_t, err error) {
	err = unix.Statx(unix.AT_FDCWD, dir, unix.AT_STATX_FORCE_SYNC|unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &st)
	return st, err
}

// explainLock adds to an error of filelock the holder of the lock, or what to do.
func explainLock(path string, err error) error {
	switch {
	case errors.Is(err, filelock.ErrBusy):
		return fmt.Errorf("%s is locked by %s", path, readHolder(path))
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOLCK):
		return fmt.Errorf(
			"cannot lock %s: %w; the storage must have locks for all nodes: NFS without nolock, Lustre with -o flock",
			path, oneline.Errno(err))
	case errors.Is(err, unix.EROFS), errors.Is(err, unix.EACCES):
		return fmt.Errorf("cannot lock %s: %w; run it on a node that may write to the storage", path,
			oneline.Errno(err))
	}
	return err
}

// writeHolder writes the description of this process into a file that it has locked. The description is for messages
// only, so a full file system is no error: a version can still be removed then.
func writeHolder(file *os.File) error {
	text, err := json.Marshal(newHolder())
	if err != nil {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("cannot write %s: %w", file.Name(), oneline.Cause(err))
	}
	if _, err = file.WriteAt(append(text, '\n'), 0); errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return nil
	}
	return err
}

// readHolder reads the holder from a lock file; it returns the zero holder if that fails.
func readHolder(path string) (h holder) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return h
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 64<<10))
	if err != nil || json.Unmarshal(text, &h) != nil {
		return holder{}
	}
	return h
}
