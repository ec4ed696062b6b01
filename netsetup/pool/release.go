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
	if err := s.check(Claim{Owner: o}); err != nil {
		return err
	}
	_, err := locked(ctx, s, "release the address of "+o.String(), func() (struct{}, error) {
		had, err := s.recorded(o)
		for _, l := range had {
			if err == nil {
				err = s.free(l)
			}
		}
		return struct{}{}, err
	})
	return err
}

// free takes back a lease in whatever state it was left. Its name holds its owner, so
// removing it cannot hit anybody else's; the address's directory goes only if it is
// empty. The record goes last.
func (s *shared) free(l Lease) error {
	if err := gone(os.Remove(s.lease(l))); err != nil {
		return err
	}
	if err := s.clear(l.Addr, l.Node); err != nil {
		return err
	}
	if err := s.vacate(l.Addr); err != nil {
		return err
	}
	return gone(os.Remove(s.record(l)))
}

// clear removes the lease that a node was about to put in addr's block.
func (s *shared) clear(addr netip.Addr, node string) error {
	fresh := s.fresh(addr, node)
	names, err := namesIn(fresh)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := gone(os.Remove(filepath.Join(fresh, name))); err != nil {
			return err
		}
	}
	return gone(os.Remove(fresh))
}

// vacate removes addr's directory if nobody has the address, and tells that its block has room.
func (s *shared) vacate(addr netip.Addr) error {
	err := ignoringEINTR(func() error { return unix.Rmdir(s.home(addr)) })
	if err != nil && err != unix.ENOTEMPTY && err != unix.EEXIST {
		if err = gone(err); err != nil {
			return &os.PathError{Op: "rmdir", Path: s.home(addr), Err: err}
		}
	}
	return gone(os.Remove(s.full(blockOf(addr))))
}

// gone is err, unless it says that there is nothing to remove.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

func (s *shared) Sweep(ctx context.Context, alive func(Owner) bool) ([]Lease, error) {
	_, err := locked(ctx, s, "end old quarantines", func() (struct{}, error) { return struct{}{}, s.expire() })
	freed, err2 := s.sweepNode(ctx, s.node, alive)
	return freed, errors.Join(err, err2)
}

// sweepNode goes by a node's records, so it costs nothing on a large pool.
func (s *shared) sweepNode(ctx context.Context, node string, alive func(Owner) bool) ([]Lease, error) {
	names, err := locked(ctx, s, "list the leases of "+node, func() ([]string, error) { return namesIn(s.path("nodes", node)) })
	problems := []error{err}
	var freed []Lease
	for _, name := range names {
		if name == "self" {
			continue
		}
		l, ok := parseRecordName(node, name)
		if !ok {
			problems = append(problems, s.alien("nodes", node, name))
			continue
		}
		done, err := s.sweep(ctx, l, alive)
		if done {
			freed = append(freed, l)
		}
		problems = append(problems, err)
	}
	return freed, errors.Join(problems...)
}

// sweep frees a lease unless its owner is alive. One lock is held for question and
// answer: a job that asks for its address meanwhile finds it, or gets a new one.
func (s *shared) sweep(ctx context.Context, l Lease, alive func(Owner) bool) (bool, error) {
	return locked(ctx, s, "sweep the address of "+l.Owner.String(), func() (bool, error) {
		_, noRecord := os.Lstat(s.record(l))
		_, noLease := os.Lstat(s.lease(l))
		if noRecord != nil && noLease != nil || alive(l.Owner) { // or released by now
			return false, nil
		}
		err := s.free(l)
		return err == nil, err
	})
}

// SweepAll goes by the records of every node, and then by the leases themselves.
func (s *shared) SweepAll(ctx context.Context, alive func(Owner) bool) ([]Lease, error) {
	freed, err := s.Sweep(ctx, alive)
	problems := []error{err}
	nodes, err := locked(ctx, s, "list the nodes", func() ([]string, error) { return namesIn(s.path("nodes")) })
	problems = append(problems, err)
	for _, node := range nodes {
		if node == s.node || !word(node) {
			continue
		}
		more, err := s.sweepNode(ctx, node, alive)
		freed = append(freed, more...)
		problems = append(problems, err)
	}
	leases, err := s.Leases(ctx)
	problems = append(problems, err)
	for _, l := range leases {
		done, err := s.sweep(ctx, l, alive)
		if done {
			freed = append(freed, l)
		}
		problems = append(problems, err)
	}
	return freed, errors.Join(problems...)
}

// alien reports what gojail did not write. It is never removed: it may be somebody's.
func (s *shared) alien(parts ...string) error {
	return fmt.Errorf("pool %s: gojail did not write %q; look at it and remove it", s.name, s.path(parts...))
}
