// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
)

// Lock takes the lock of the file at path by the deadline, and creates a missing file. The error names
// the remedy.
func Lock(path string, deadline time.Time) (unlock func(), err error) {
	f, err := Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w; does the state directory exist, and is it writable?", path,
			oneline.Cause(err))
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	switch err := WaitFile(ctx, f); {
	case errors.Is(err, ErrBusy):
		defer f.Close()
		return nil, explainBusy(path, describeHolder(f))
	case err != nil:
		f.Close()
		return nil, Explain(path, err)
	}
	return func() { f.Close() }, nil
}

// Explain returns the error of a lock of path with its remedy.
func Explain(path string, err error) error {
	var errno unix.Errno
	switch {
	case errors.Is(err, ErrBusy), errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EINTR):
		return explainBusy(path, "another process")
	case !errors.As(err, &errno):
		return fmt.Errorf("cannot lock %s: %w", path, oneline.Cause(err))
	}
	switch errno {
	case unix.ENOSYS, unix.EOPNOTSUPP, unix.ENOLCK:
		return fmt.Errorf("cannot lock %s: %w; use a directory on the node itself, for example in /run, or mount "+
			"Lustre with -o flock", path, errno)
	}
	return fmt.Errorf("cannot lock %s: %w", path, errno)
}

func explainBusy(path, holder string) error {
	return fmt.Errorf("cannot lock %s: %s held the lock until the deadline", path, holder)
}
