// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func (s *shared) Release(ctx context.Context, o Owner) error {
	if err := s.checkClaim(Claim{Owner: o}); err != nil {
		return err
	}
	_, err := runLocked(ctx, s, "release the address of "+o.String(), func() (struct{}, error) {
		had, err := s.readRecords(o)
		for _, l := range had {
			if err == nil {
				err = s.freeLease(l)
			}
		}
		return struct{}{}, err
	})
	return err
}

// freeLease releases a lease in whatever state it was left. The lease's name holds its
// owner, so the removal cannot affect another lease; the address's directory is removed only
// if it is empty. The record is removed last.
func (s *shared) freeLease(l Lease) error {
	if err := ignoreMissing(os.Remove(s.leasePath(l))); err != nil {
		return err
	}
	if err := s.clearFresh(l.Addr, l.Node); err != nil {
		return err
	}
	if err := s.vacateAddress(l.Addr); err != nil {
		return err
	}
	return ignoreMissing(os.Remove(s.recordPath(l)))
}

// clearFresh removes the lease that a node was preparing in addr's block.
func (s *shared) clearFresh(addr netip.Addr, node string) error {
	fresh := s.freshPath(addr, node)
	names, err := listNames(fresh)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ignoreMissing(os.Remove(filepath.Join(fresh, name))); err != nil {
			return err
		}
	}
	return ignoreMissing(os.Remove(fresh))
}

// vacateAddress removes addr's directory if no owner has the address, and removes the mark
// that its block is full.
func (s *shared) vacateAddress(addr netip.Addr) error {
	err := retryEINTR(func() error { return unix.Rmdir(s.addressPath(addr)) })
	if err != nil && err != unix.ENOTEMPTY && err != unix.EEXIST {
		if err = ignoreMissing(err); err != nil {
			return &os.PathError{Op: "rmdir", Path: s.addressPath(addr), Err: err}
		}
	}
	return ignoreMissing(os.Remove(s.fullMarkPath(blockOf(addr))))
}

// ignoreMissing returns err, or nil if err says that there is nothing to remove.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

func (s *shared) Sweep(ctx context.Context, alive func(Owner) bool) ([]Lease, error) {
	_, err := runLocked(ctx, s, "end old quarantines", func() (struct{}, error) {
		return struct{}{},
			s.expireQuarantines()
	})
	had, listErr := runLocked(ctx, s, "list the leases of "+s.node, func() (list, error) { return s.readNode(s.node) })
	problems := []error{err, listErr, had.aliens}
	var freed []Lease
	for _, l := range had.leases {
		done, err := s.sweepLease(ctx, l, alive)
		if done {
			freed = append(freed, l)
		}
		problems = append(problems, err)
	}
	return freed, errors.Join(problems...)
}

// readNode returns the leases in a node's records, so that the cost does not depend on the size
// of the pool.
func (s *shared) readNode(node string) (list, error) {
	names, err := listNames(s.joinPath("nodes", node))
	if err != nil {
		return list{}, err
	}
	var had list
	for _, name := range names {
		if name == "self" {
			continue
		}
		if l, ok := parseRecordName(node, name); ok {
			had.leases = append(had.leases, l)
		} else {
			had.aliens = errors.Join(had.aliens, s.alienError("nodes", node, name))
		}
	}
	return had, nil
}

// sweepLease releases a lease unless its owner is alive. It holds the lock during the
// question and the release: a job that acquires its address meanwhile finds it, or gets a
// new one.
func (s *shared) sweepLease(ctx context.Context, l Lease, alive func(Owner) bool) (bool, error) {
	return runLocked(ctx, s, "sweep the address of "+l.Owner.String(), func() (bool, error) {
		_, recordErr := os.Lstat(s.recordPath(l))
		_, leaseErr := os.Lstat(s.leasePath(l))
		if recordErr != nil && leaseErr != nil || alive(l.Owner) { // released meanwhile, or still in use
			return false, nil
		}
		err := s.freeLease(l)
		return err == nil, err
	})
}

// alienError reports a file that gojail did not write. Such a file is never removed: it may
// belong to somebody else.
func (s *shared) alienError(parts ...string) error {
	return fmt.Errorf("pool %s: gojail did not write %q; inspect and remove it", s.name, s.joinPath(parts...))
}
