// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/gojail/gojail/internal/deadline"
)

// Writer replaces a file atomically, and waits for its disk until ctx ends at the latest.
type Writer func(ctx context.Context, path string, text []byte) error

// NewWriter returns a Writer for a kind of file that calls write and holds a lock in the directory locks meanwhile. A
// call that hangs with the disk keeps the lock as long as this process exists: later runs write no such file.
func NewWriter(locks, kind string, write func(path string, text []byte) error) Writer {
	return func(ctx context.Context, path string, text []byte) error {
		err, inTime := deadline.Call(ctx, func() error {
			file, err := takeLock(filepath.Join(locks, kind+".lock"))
			if err != nil {
				return err
			}
			defer file.Close()
			writeLabel(file, kind)
			return write(path, text)
		})
		if !inTime {
			return errDisk
		}
		return err
	}
}

var errDisk = errors.New("the disk does not answer in time")
