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

func (s *shared) Acquire(ctx context.Context, c Claim) (netip.Addr, error) {
	if err := s.check(c); err != nil {
		return netip.Addr{}, err
	}
	return locked(ctx, s, "lease an address for "+c.Owner.String(), func() (netip.Addr, error) { return s.acquire(ctx, c) })
}

// check refuses a claim of another node's, or with parts that cannot be in a name.
func (s *shared) check(c Claim) error {
	l := Lease{c.Owner, s.usable.sorted[0].First, c.VF, s.now()}
	if err := l.check(); err != nil {
		return fmt.Errorf("pool %s: %w", s.name, err)
	}
	if c.Node != s.node {
		return fmt.Errorf("pool %s: opened for node %s, not for %s", s.name, s.node, c.Node)
	}
	return nil
}

func (s *shared) acquire(ctx context.Context, c Claim) (netip.Addr, error) {
	start := s.start(c.Owner)
	had, err := s.recorded(c.Owner)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, l := range had {
		usable := s.usable.contains(l.Addr)
		if ours, err := s.holds(l); err != nil || ours && usable && l.VF == c.VF {
			return l.Addr, err
		}
		if usable {
			start = l.Addr
		}
		// It is another VF's, or in quarantine, or a process was killed before it was leased.
		if err := s.free(l); err != nil {
			return netip.Addr{}, err
		}
	}
	for {
		addr, err := s.find(ctx, start)
		if err != nil {
			return netip.Addr{}, err
		}
		if taken, err := s.take(Lease{c.Owner, addr, c.VF, s.now()}); err != nil || taken {
			return addr, err
		}
		start = addr // another node was faster
	}
}

// recorded lists what this node's records say of an owner: one lease, or none.
func (s *shared) recorded(o Owner) ([]Lease, error) {
	names, err := namesIn(s.path("nodes", o.Node))
	var had []Lease
	for _, name := range names {
		if l, ok := parseRecordName(o.Node, name); ok && l.Owner == o {
			had = append(had, l)
		}
	}
	return had, err
}

// holds tells whether the lease is there, and in no quarantine.
func (s *shared) holds(l Lease) (bool, error) {
	names, err := namesIn(s.home(l.Addr))
	return len(names) == 1 && names[0] == leaseName(l), err
}

// take leases an address unless another owner has it. The record comes first: whatever
// is left behind when the process is killed, free finds it through the record.
func (s *shared) take(l Lease) (bool, error) {
	taken, err := s.tryTake(l)
	if taken {
		return true, nil
	}
	return false, errors.Join(err, s.free(l))
}

func (s *shared) tryTake(l Lease) (bool, error) {
	// What is there already was made by a try whose answer got lost (NFS).
	if err := notNew(os.Link(s.self(), s.record(l))); err != nil {
		return false, err
	}
	if err := s.makeFresh(l.Addr); err != nil {
		return false, err
	}
	fresh := s.fresh(l.Addr, s.node)
	if err := notNew(os.Link(s.self(), filepath.Join(fresh, leaseName(l)))); err != nil {
		return false, err
	}
	// The kernel's own rename: Go's refuses an empty directory as the target.
	err := ignoringEINTR(func() error { return unix.Rename(fresh, s.home(l.Addr)) })
	if err == nil {
		return true, nil
	}
	// An NFS server's answer can get lost; the second try is refused then, see link in open(2).
	if _, there := os.Lstat(s.lease(l)); there == nil {
		return true, nil
	}
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	return false, &os.LinkError{Op: "rename", Old: fresh, New: s.home(l.Addr), Err: err}
}

// makeFresh makes the directory that becomes the address, empty, and its block.
func (s *shared) makeFresh(addr netip.Addr) error {
	err := os.Mkdir(s.fresh(addr, s.node), 0o700)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the first of its block
		err = notNew(os.Mkdir(s.block(addr), 0o700))
	case errors.Is(err, fs.ErrExist): // of a process of this node that was killed
		err = s.clear(addr, s.node)
	default:
		return err
	}
	if err != nil {
		return err
	}
	return os.Mkdir(s.fresh(addr, s.node), 0o700)
}

// find looks for an address that is free, in blocks that are not known to be full.
// Only before it gives up it looks everywhere, and at quarantines that have ended.
func (s *shared) find(ctx context.Context, start netip.Addr) (netip.Addr, error) {
	names, err := namesIn(s.path("full"))
	if err != nil {
		return netip.Addr{}, err
	}
	full := make(map[string]bool, len(names))
	for _, name := range names {
		full[name] = true
	}
	for _, everywhere := range []bool{false, true} {
		if everywhere {
			if err := s.expire(); err != nil {
				return netip.Addr{}, err
			}
		}
		for block := range s.blocks(start) {
			if err := ctx.Err(); err != nil {
				return netip.Addr{}, err
			}
			if !everywhere && full[block.String()] {
				continue
			}
			if addr, ok, err := s.gapOrFull(block, start); err != nil || ok {
				return addr, err
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("%w of %d; wait for jobs to end, or widen the pool in network.toml", errFull, s.usable.size)
}

// gapOrFull finds a gap in a block or marks the block full. The mark is made before
// the last look and removed after each release, so it never hides a gap for good.
func (s *shared) gapOrFull(block, start netip.Addr) (netip.Addr, bool, error) {
	addr, ok, err := s.gap(block, start)
	if err != nil || ok {
		return addr, ok, err
	}
	marked := os.Link(s.self(), s.full(block)) == nil
	addr, ok, err = s.gap(block, start)
	if ok && marked {
		err = gone(os.Remove(s.full(block)))
	}
	return addr, ok, err
}

// gap is a usable address of the block that is not taken, in start's place or after.
func (s *shared) gap(block, start netip.Addr) (netip.Addr, bool, error) {
	names, err := namesIn(s.block(block))
	if err != nil {
		return netip.Addr{}, false, err
	}
	var taken [1 << blockBits]bool
	for _, name := range names {
		if a, ok := parseAddr(name); ok && blockOf(a) == block {
			taken[offset(a)] = true
		}
	}
	first := offset(start)
	for i := range taken {
		n := (first + i) % len(taken)
		if taken[n] {
			continue
		}
		if a := plus(block, uint64(n)); s.usable.contains(a) {
			return a, true, nil
		}
	}
	return netip.Addr{}, false, nil
}

// namesIn lists a directory; one that is not there, or is none, has no names.
func namesIn(dir string) ([]string, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
