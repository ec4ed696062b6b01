// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
)

// A version that is being copied has a shared lock on its record, flock(2), which the kernel or the NFS server
// releases when the process or the node of the copy ends. A removal takes an exclusive lock. Files in a directory could
// not serve as marks instead, because NFS clients cache what other nodes do to a directory.

// copiedError is the error for a version that is being copied.
type copiedError struct{ Version string }

func (e *copiedError) Error() string {
	return "version " + e.Version + " is being copied by gojail jail edit; wait for its end"
}

// BeginCopy returns a version that nobody removes until end is called or this process ends.
func (j *Jail) BeginCopy(ctx context.Context, id string) (v *Version, end func(), err error) {
	err = j.withLock(ctx, func() error {
		if v, err = j.Version(id); err != nil {
			return err
		}
		if v.Err != nil {
			return fmt.Errorf("version %s cannot be copied: %w", v.Version, v.Err)
		}
		record, err := lockRecord(j.recordPath(v.Version), os.O_RDONLY, filelock.ShareFile)
		if err != nil {
			return fmt.Errorf("version %s cannot be copied: %w", v.Version, err)
		}
		end = func() { record.Close() }
		return nil
	})
	return v, end, err
}

// refuseCopied fails if a version is being copied. The caller holds the jail's lock, so that no copy begins.
func (j *Jail) refuseCopied(v *Version) error {
	// On NFS, an exclusive lock requires O_RDWR (flock(2)).
	record, err := lockRecord(j.recordPath(v.Version), os.O_RDWR, filelock.TryFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // nobody copies a version without a record
	case errors.Is(err, filelock.ErrBusy):
		return &copiedError{v.Version}
	case err != nil:
		return err
	}
	return record.Close()
}

// lockRecord opens a record and locks it without waiting.
func lockRecord(path string, flags int, lock func(*os.File) error) (*os.File, error) {
	record, err := os.OpenFile(path, flags|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, oneline.Cause(err)
	}
	if err := lock(record); err != nil {
		record.Close()
		return nil, err
	}
	return record, nil
}
