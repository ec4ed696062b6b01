// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Two locks end with the process that has them, in this order: a job's, while its
// network is made or given back, and the node's, while VFs are chosen and while
// RDMA devices are moved, which renumbers them.

// lockNode waits for the node's lock.
func (s store) lockNode(ctx context.Context) (*os.File, error) {
	return lock(ctx, s.lockPath(), "the node's lock", func(fd int) error {
		return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	})
}

// Lock waits for the node's lock, without which no job is given a VF. It ends with the
// file, or the process. busy is called with the lock's path if another process has it.
// state is Site.State, the directory above which must be there.
func Lock(ctx context.Context, state string, busy func(path string)) (*os.File, error) {
	s := store(state)
	if err := s.prepare(); err != nil {
		return nil, err
	}
	now, cancel := context.WithTimeout(ctx, 0)
	defer cancel()
	file, err := s.lockNode(now)
	if !errors.Is(err, errBusy) {
		return file, err
	}
	busy(s.lockPath())
	return s.lockNode(ctx)
}

func (s store) lockPath() string { return filepath.Join(string(s), "lock") }

// withNode does something with the node's lock.
func (s store) withNode(ctx context.Context, do func() error) error {
	lock, err := s.lockNode(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	return do()
}

// lockJob waits for the lock of a job. It is one byte of a file, found by the
// job's name, so that no file stays behind for each job; that two jobs meet there
// by chance only makes one of them wait.
func (s store) lockJob(ctx context.Context, job string) (*os.File, error) {
	hash := fnv.New64a()
	hash.Write([]byte(job))
	byte := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(hash.Sum64() % math.MaxInt64), Len: 1}
	return lock(ctx, filepath.Join(string(s), "jobs.lock"), "the lock of job "+job, func(fd int) error {
		return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &byte)
	})
}

var errBusy = errors.New("another process has it")

// lock tries again and again until the context ends, and once at least.
func lock(ctx context.Context, path, what string, try func(fd int) error) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot take %s: %w", what, err)
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := try(int(file.Fd()))
		if err == nil {
			return file, nil
		}
		if err != unix.EAGAIN && err != unix.EACCES && err != unix.EINTR {
			file.Close()
			return nil, fmt.Errorf("cannot take %s in %s: %w", what, path, err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("%s: %w for too long", what, errBusy)
		case <-time.After(pause):
		}
	}
}
