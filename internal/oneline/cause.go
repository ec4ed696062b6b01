// SPDX-License-Identifier: Apache-2.0

package oneline

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Errno drops the "open /path:" that package os puts before an errno: our messages have said it.
func Errno(err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// Cause is the reason without the operation and path, which the caller names itself.
func Cause(err error) error {
	if pe, ok := err.(*os.PathError); ok {
		return pe.Err
	}
	if le, ok := err.(*os.LinkError); ok {
		return le.Err
	}
	return err
}

// Both are two errors in one line; errors.Join would make two lines of them.
func Both(err, more error) error {
	switch {
	case err == nil:
		return more
	case more == nil:
		return err
	}
	return fmt.Errorf("%w; %w", err, more)
}
