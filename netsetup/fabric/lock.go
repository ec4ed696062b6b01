// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

var errLocked = fmt.Errorf("%w: another process of this node has the lock for too long", ErrAway)

// locked runs f with the lock on the queue's files; f must not call UFM.
func (q *Queue) locked(ctx context.Context, f func() error) error {
	file, err := q.lockFile()
	if err != nil {
		return err
	}
	defer file.Close()
	err = waitFor(ctx, func() error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err != nil {
		return err
	}
	return f()
}

// lockGUIDs takes the locks of GUIDs, in order so that two processes never wait for
// each other. Each is one byte of the lock file; two GUIDs that share it only wait.
func (q *Queue) lockGUIDs(ctx context.Context, guids []GUID) (unlock func(), err error) {
	file, err := q.lockFile()
	if err != nil {
		return nil, err
	}
	var places []int64
	for _, g := range guids {
		places = append(places, int64(g&(1<<62-1)))
	}
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: place, Len: 1}
		err := waitFor(ctx, func() error { return unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock) })
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("UFM's queue: %w", err)
		}
	}
	return func() { file.Close() }, nil
}

func (q *Queue) lockPath() string { return filepath.Join(q.dir, "lock") }

func (q *Queue) lockFile() (*os.File, error) {
	return os.OpenFile(q.lockPath(), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
}

// waitFor tries a lock until it is free or the context ends.
func waitFor(ctx context.Context, try func() error) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := try()
		if err == nil || err != unix.EWOULDBLOCK && err != unix.EINTR && err != unix.EACCES {
			return err
		}
		select {
		case <-ctx.Done():
			return errLocked
		case <-time.After(wait):
		}
	}
}
