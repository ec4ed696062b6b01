// SPDX-License-Identifier: Apache-2.0

package oneline

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Errno returns the errno of an error without the "open /path:" of package os.
func Errno(err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// Cause returns the cause of an error without its operation and path.
func Cause(err error) error {
	if pe, ok := err.(*os.PathError); ok {
		return pe.Err
	}
	if le, ok := err.(*os.LinkError); ok {
		return le.Err
	}
	return err
}

// Both joins two errors in one line, unlike errors.Join.
func Both(err, more error) error {
	switch {
	case err == nil:
		return more
	case more == nil:
		return err
	}
	return fmt.Errorf("%w; %w", err, more)
}
