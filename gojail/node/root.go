// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
)

// ErrEmptyRoot is the only fault of a root that users of the jail can cause in it.
var ErrEmptyRoot = errors.New("is empty")

// CheckRoot fails if a jail's root is missing or unreadable, or is an empty directory, as a mount point
// without its storage is.
func CheckRoot(path string) error {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("jail root %s does not exist", path)
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("jail root %s is not a directory", path)
	case err != nil:
		return fmt.Errorf("cannot open jail root %s: %w", path, oneline.Errno(err))
	}
	defer dir.Close()
	_, err = dir.Readdirnames(1)
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("jail root %s %w: is its storage mounted?", path, ErrEmptyRoot)
	case err != nil:
		return fmt.Errorf("cannot read jail root %s: %w", path, oneline.Errno(err))
	}
	return nil
}
