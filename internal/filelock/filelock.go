// SPDX-License-Identifier: Apache-2.0

// Package filelock takes file locks that end with their process, with a deadline.
package filelock

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
)

// Lock takes an flock, which the kernel gives back if this process dies.
func Lock(path string, deadline time.Time) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w; is the state directory there and writable?", path, oneline.Cause(err))
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR || time.Now().After(deadline) {
			f.Close()
			return nil, Explain(path, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func Explain(path string, err error) error {
	switch err {
	case unix.EWOULDBLOCK, unix.EINTR:
		return fmt.Errorf("cannot lock %s: another process has been at it until the deadline", path)
	case unix.ENOSYS, unix.EOPNOTSUPP, unix.ENOLCK:
		return fmt.Errorf("cannot lock %s: %w; have the directory on the node itself, in /run say, or mount Lustre with -o flock", path, err)
	}
	return fmt.Errorf("cannot lock %s: %w", path, oneline.Cause(err))
}
