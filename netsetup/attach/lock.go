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

	"github.com/gojail/gojail/internal/filelock"
)

// There are two locks, taken in this order, which end with the process that holds them:
// the job's lock, while its network is attached or released, and the node's lock, while
// VFs are chosen and while RDMA devices are moved, which renumbers them.

// lockNode waits for the node's lock and takes it.
func (s store) lockNode(ctx context.Context) (*os.File, error) {
	file, err := filelock.Wait(ctx, s.lockPath())
	if err != nil {
		return nil, lockError("the node's lock", err)
	}
	return file, nil
}

// lockError returns the error of a lock that could not be taken; what names the lock.
func lockError(what string, err error) error {
	if errors.Is(err, filelock.ErrBusy) {
		return fmt.Errorf("%s: %w for too long", what, err)
	}
	return fmt.Errorf("cannot take %s: %w", what, err)
}

// LockNode waits for the node's lock, without which no job is given a VF, and takes it. The
// lock ends with the file or the process. LockNode calls busy with the lock's path if
// another process holds it. state is Site.State; the directory above it must exist.
func LockNode(ctx context.Context, state string, busy func(path string)) (*os.File, error) {
	s := store(state)
	if err := s.prepare(); err != nil {
		return nil, err
	}
	return takeAloud(ctx, s.lockNode, func() { busy(s.lockPath()) })
}

// takeAloud takes a lock, and calls busy before it waits for another process, so that a person at a terminal knows why
// nothing happens.
func takeAloud(ctx context.Context, take func(context.Context) (*os.File, error), busy func()) (*os.File, error) {
	now, cancel := context.WithTimeout(ctx, 0)
	defer cancel()
	file, err := take(now)
	if !errors.Is(err, filelock.ErrBusy) {
		return file, err
	}
	busy()
	return take(ctx)
}

func (s store) lockPath() string     { return filepath.Join(string(s), "lock") }
func (s store) jobLocksPath() string { return filepath.Join(string(s), "jobs.lock") }

// withNodeLock calls do with the node's lock.
func (s store) withNodeLock(ctx context.Context, do func() error) error {
	lock, err := s.lockNode(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	return do()
}

// lockJob waits for the lock of a job and takes it. The lock is one byte of a file, selected
// by a hash of the job's name, so that no file per job is left. If two jobs share a byte,
// one of them waits.
func (s store) lockJob(ctx context.Context, job string) (*os.File, error) {
	hash := fnv.New64a()
	hash.Write([]byte(job))
	file, err := filelock.Open(s.jobLocksPath())
	if err == nil {
		if err = filelock.WaitByte(ctx, file, int64(hash.Sum64()%math.MaxInt64)); err == nil {
			return file, nil
		}
		file.Close()
	}
	return nil, lockError("the lock of job "+job, err)
}
