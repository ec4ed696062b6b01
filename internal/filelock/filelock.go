// SPDX-License-Identifier: Apache-2.0

// Package filelock takes locks on files. The kernel releases a lock when its file is closed or the
// process ends.
//
// Open file description locks (F_OFD_SETLK, Linux 3.15) and flock(2) ignore each other, so a file must
// have locks of one kind only. Over NFS the server keeps both.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy means that another process holds the lock.
var ErrBusy = errors.New("another process has it")

// Pauses between two attempts.
const (
	firstPause = time.Millisecond
	longPause  = 20 * time.Millisecond
)

// Open opens a lock file, and creates a missing one for root only. It follows no symbolic link.
func Open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
}

// Try takes the lock of the file at path. It returns ErrBusy if another process holds it.
func Try(path string) (*os.File, error) { return take(path, TryFile) }

// Wait takes the lock of the file at path as Try does, but waits for it until ctx ends. It tries at least once.
func Wait(ctx context.Context, path string) (*os.File, error) {
	return take(path, func(file *os.File) error { return WaitFile(ctx, file) })
}

// OpenExisting opens a lock file without creating one. If it is missing, OpenExisting returns a file in memory instead.
func OpenExisting(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return CreateInMemory()
	}
	return file, err
}

// CreateInMemory creates a lock file without a name, for this process and the processes that inherit it.
func CreateInMemory() (*os.File, error) {
	fd, err := unix.MemfdCreate("lock", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot create a lock in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), "lock"), nil
}

// ShareFile takes a shared lock of an open file, which several processes can have. It returns ErrBusy if another
// process holds the lock alone.
func ShareFile(file *os.File) error {
	return check(file, unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB))
}

func take(path string, lock func(*os.File) error) (*os.File, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := lock(file); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// TryFile takes the lock of an open file, or of a directory.
func TryFile(file *os.File) error {
	return check(file, unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB))
}

// WaitFile takes the lock of an open file as TryFile does, but waits for it until ctx ends. It tries at least once.
func WaitFile(ctx context.Context, file *os.File) error {
	return wait(ctx, func() error { return TryFile(file) })
}

// WaitByte waits for the lock of one byte of a file. The byte may lie behind the end of the file, so that one file
// serves many locks.
func WaitByte(ctx context.Context, file *os.File, place int64) error {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: place, Len: 1}
	return wait(ctx, func() error { return check(file, unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock)) })
}

// check adds the file's name to an error. fcntl(2) may return EACCES for EAGAIN.
func check(file *os.File, err error) error {
	switch err {
	case nil:
		return nil
	case unix.EWOULDBLOCK, unix.EACCES, unix.EINTR:
		return ErrBusy
	}
	return fmt.Errorf("cannot lock %s: %w", file.Name(), err)
}

func wait(ctx context.Context, try func() error) error {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := try()
		if !errors.Is(err, ErrBusy) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
