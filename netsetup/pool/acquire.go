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
	if err := s.checkClaim(c); err != nil {
		return netip.Addr{}, err
	}
	return runLocked(ctx, s, "lease an address for "+c.Owner.String(),
		func() (netip.Addr, error) { return s.acquireLocked(ctx, c) })
}

// checkClaim rejects a claim of another node, and one with parts that cannot be in a file
// name.
func (s *shared) checkClaim(c Claim) error {
	l := Lease{c.Owner, s.usable.sorted[0].First, c.VF, s.now()}
	if err := l.check(); err != nil {
		return fmt.Errorf("pool %s: %w", s.name, err)
	}
	if c.Node != s.node {
		return fmt.Errorf("pool %s: opened for node %s, not for %s", s.name, s.node, c.Node)
	}
	return nil
}

func (s *shared) acquireLocked(ctx context.Context, c Claim) (netip.Addr, error) {
	start := s.pickStart(c.Owner)
	had, err := s.readRecords(c.Owner)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, l := range had {
		usable := s.usable.contains(l.Addr)
		if ours, err := s.hasLease(l); err != nil || ours && usable && l.VF == c.VF {
			return l.Addr, err
		}
		if usable {
			start = l.Addr
		}
		// The address is leased for another VF or in quarantine, or the process that made the record was killed.
		if err := s.freeLease(l); err != nil {
			return netip.Addr{}, err
		}
	}
	for {
		addr, err := s.findFree(ctx, start)
		if err != nil {
			return netip.Addr{}, err
		}
		if taken, err := s.takeLease(Lease{c.Owner, addr, c.VF, s.now()}); err != nil || taken {
			return addr, err
		}
		start = addr // another node has leased it meanwhile
	}
}

// readRecords returns this node's records of an owner: one lease, or none.
func (s *shared) readRecords(o Owner) ([]Lease, error) {
	names, err := listNames(s.joinPath("nodes", o.Node))
	var had []Lease
	for _, name := range names {
		if l, ok := parseRecordName(o.Node, name); ok && l.Owner == o {
			had = append(had, l)
		}
	}
	return had, err
}

// hasLease reports whether the lease exists and its address is not in quarantine.
func (s *shared) hasLease(l Lease) (bool, error) {
	names, err := listNames(s.addressPath(l.Addr))
	return len(names) == 1 && names[0] == formatLeaseName(l), err
}

// takeLease leases an address unless another owner has it. It makes the record first:
// whatever a killed process leaves, freeLease finds it through the record.
func (s *shared) takeLease(l Lease) (bool, error) {
	taken, err := s.tryTakeLease(l)
	if taken {
		return true, nil
	}
	return false, errors.Join(err, s.freeLease(l))
}

func (s *shared) tryTakeLease(l Lease) (bool, error) {
	// An existing record was made by a try whose answer was lost (NFS).
	if err := ignoreExisting(os.Link(s.selfPath(), s.recordPath(l))); err != nil {
		return false, err
	}
	if err := s.makeFreshDir(l.Addr); err != nil {
		return false, err
	}
	fresh := s.freshPath(l.Addr, s.node)
	if err := ignoreExisting(os.Link(s.selfPath(), filepath.Join(fresh, formatLeaseName(l)))); err != nil {
		return false, err
	}
	// os.Rename refuses an empty directory as the target; rename(2) does not.
	err := retryEINTR(func() error { return unix.Rename(fresh, s.addressPath(l.Addr)) })
	if err == nil {
		return true, nil
	}
	// An NFS server's answer can be lost, so that the second try fails; see link in open(2).
	if _, lookupErr := os.Lstat(s.leasePath(l)); lookupErr == nil {
		return true, nil
	}
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	return false, &os.LinkError{Op: "rename", Old: fresh, New: s.addressPath(l.Addr), Err: err}
}

// makeFreshDir creates the empty directory that becomes the address, and the directory of
// its block.
func (s *shared) makeFreshDir(addr netip.Addr) error {
	err := os.Mkdir(s.freshPath(addr, s.node), 0o700)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the first address of its block
		err = ignoreExisting(os.Mkdir(s.blockPath(addr), 0o700))
	case errors.Is(err, fs.ErrExist): // left by a killed process of this node
		err = s.clearFresh(addr, s.node)
	default:
		return err
	}
	if err != nil {
		return err
	}
	return os.Mkdir(s.freshPath(addr, s.node), 0o700)
}

// findFree returns a free address. It skips blocks that are marked as full; only if it finds
// none, it searches all blocks and ends expired quarantines.
func (s *shared) findFree(ctx context.Context, start netip.Addr) (netip.Addr, error) {
	names, err := listNames(s.joinPath("full"))
	if err != nil {
		return netip.Addr{}, err
	}
	full := make(map[string]bool, len(names))
	for _, name := range names {
		full[name] = true
	}
	for _, everywhere := range []bool{false, true} {
		if everywhere {
			if err := s.expireQuarantines(); err != nil {
				return netip.Addr{}, err
			}
		}
		for block := range s.iterateBlocks(start) {
			if err := ctx.Err(); err != nil {
				return netip.Addr{}, err
			}
			if !everywhere && full[block.String()] {
				continue
			}
			if addr, ok, err := s.findGapOrMarkFull(block, start); err != nil || ok {
				return addr, err
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("%w of %d; wait for jobs to end, or widen the pool in network.toml", errFull,
		s.usable.size)
}

// findGapOrMarkFull returns a gap in a block, or marks the block as full. The mark is made
// before the last search and removed after each release, so it never hides a gap
// permanently.
func (s *shared) findGapOrMarkFull(block, start netip.Addr) (netip.Addr, bool, error) {
	addr, ok, err := s.findGap(block, start)
	if err != nil || ok {
		return addr, ok, err
	}
	marked := os.Link(s.selfPath(), s.fullMarkPath(block)) == nil
	addr, ok, err = s.findGap(block, start)
	if ok && marked {
		err = ignoreMissing(os.Remove(s.fullMarkPath(block)))
	}
	return addr, ok, err
}

// findGap returns a usable address of the block that is not taken, starting at the position
// of start.
func (s *shared) findGap(block, start netip.Addr) (netip.Addr, bool, error) {
	names, err := listNames(s.blockPath(block))
	if err != nil {
		return netip.Addr{}, false, err
	}
	var taken [1 << blockBits]bool
	for _, name := range names {
		if a, ok := parseAddr(name); ok && blockOf(a) == block {
			taken[offsetInBlock(a)] = true
		}
	}
	first := offsetInBlock(start)
	for i := range taken {
		n := (first + i) % len(taken)
		if taken[n] {
			continue
		}
		if a := addOffset(block, uint64(n)); s.usable.contains(a) {
			return a, true, nil
		}
	}
	return netip.Addr{}, false, nil
}

// listNames returns the entries of a directory; a missing one, or a path that is not a
// directory, has no entries.
func listNames(dir string) ([]string, error) {
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

func retryEINTR(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
