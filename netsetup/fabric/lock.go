// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gojail/gojail/internal/filelock"
)

var errLocked = fmt.Errorf("%w: another process of this node holds the lock for too long", ErrUnreachable)

// runLocked calls f with the lock on the queue's files; f must not call UFM.
func (q *Queue) runLocked(ctx context.Context, f func() error) error {
	file, err := filelock.Wait(ctx, q.lockPath())
	if err != nil {
		return lockError(err)
	}
	defer file.Close()
	return f()
}

// lockGUIDs takes the locks of GUIDs, in ascending order, which prevents a deadlock of two
// processes. Each lock is one byte of the lock file; two GUIDs that share a byte wait for
// each other.
func (q *Queue) lockGUIDs(ctx context.Context, guids []GUID) (unlock func(), err error) {
	file, err := filelock.Open(q.lockPath())
	if err != nil {
		return nil, err
	}
	var places []int64
	for _, g := range guids {
		places = append(places, int64(g&(1<<62-1)))
	}
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		if err := filelock.WaitByte(ctx, file, place); err != nil {
			file.Close()
			return nil, fmt.Errorf("UFM's queue: %w", lockError(err))
		}
	}
	return func() { file.Close() }, nil
}

func (q *Queue) lockPath() string { return filepath.Join(q.dir, "lock") }

func lockError(err error) error {
	if errors.Is(err, filelock.ErrBusy) {
		return errLocked
	}
	return err
}
