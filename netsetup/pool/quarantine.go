// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
)

// ReportConflict marks the address before it releases it, so that the address is never free
// in between.
func (s *shared) ReportConflict(ctx context.Context, c Claim, addr netip.Addr, mac net.HardwareAddr) (netip.Addr,
	error) {
	if err := s.checkClaim(c); err != nil {
		return netip.Addr{}, err
	}
	if parsed, err := net.ParseMAC(mac.String()); err != nil || parsed.String() != mac.String() {
		return netip.Addr{}, fmt.Errorf("pool %s: %q is not a link-layer address", s.name, mac)
	}
	what := fmt.Sprintf("replace %s, which %s uses, for %s", addr, mac, c.Owner)
	return runLocked(ctx, s, what, func() (netip.Addr, error) {
		l, err := s.findLease(c.Owner, addr)
		if err != nil {
			return netip.Addr{}, err
		}
		if err := s.checkConflictLimit(); err != nil {
			return netip.Addr{}, errors.Join(err, s.freeLease(l))
		}
		q := Quarantined{Addr: addr, MAC: mac, Node: s.node, Time: s.now()}
		if err := ignoreExisting(os.Link(s.selfPath(), s.joinPath("quarantine", formatQuarantineName(q)))); err != nil {
			return netip.Addr{}, err
		}
		if err := ignoreExisting(os.Link(s.selfPath(),
			filepath.Join(s.addressPath(addr), formatMarkName(q)))); err != nil {
			return netip.Addr{}, err
		}
		if err := s.freeLease(l); err != nil {
			return netip.Addr{}, err
		}
		return s.acquireLocked(ctx, c)
	})
}

// findLease returns the owner's lease of addr.
func (s *shared) findLease(o Owner, addr netip.Addr) (Lease, error) {
	had, err := s.readRecords(o)
	for _, l := range had {
		if _, lookupErr := os.Lstat(s.leasePath(l)); l.Addr == addr && lookupErr == nil {
			return l, nil
		}
	}
	if err == nil {
		err = errors.New("the address is not leased by this job")
	}
	return Lease{}, err
}

// checkConflictLimit fails if this node detects other machines at more addresses than are
// plausible.
func (s *shared) checkConflictLimit() error {
	all, _, err := s.readQuarantine()
	if err != nil {
		return err
	}
	mine := slices.DeleteFunc(all, func(q Quarantined) bool {
		return q.Node != s.node || s.now().After(q.Until())
	})
	if len(mine) < maxConflicts {
		return nil
	}
	return fmt.Errorf("%w: this node finds %d addresses in use; check the VLAN, and whether a router answers for all "+
		"addresses (proxy ARP)", ErrConflict, len(mine)+1)
}

// expireQuarantines ends the quarantines that are over. It removes the mark first: as long
// as the list has the quarantine, the mark can be found. The mark's name holds its time, so
// a newer mark is never removed.
func (s *shared) expireQuarantines() error {
	all, _, err := s.readQuarantine()
	if err != nil {
		return err
	}
	for _, q := range all {
		if s.now().After(q.Until()) {
			if err := s.liftQuarantine(q); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *shared) liftQuarantine(q Quarantined) error {
	if err := ignoreMissing(os.Remove(filepath.Join(s.addressPath(q.Addr), formatMarkName(q)))); err != nil {
		return err
	}
	if err := s.vacateAddress(q.Addr); err != nil {
		return err
	}
	return ignoreMissing(os.Remove(s.joinPath("quarantine", formatQuarantineName(q))))
}

// readQuarantine returns the list of quarantines, by address; aliens are the lines about
// files that gojail did not write.
func (s *shared) readQuarantine() (all []Quarantined, aliens, err error) {
	names, err := listNames(s.joinPath("quarantine"))
	for _, name := range names {
		if q, ok := parseQuarantine(name); ok {
			all = append(all, q)
		} else {
			aliens = errors.Join(aliens, s.alienError("quarantine", name))
		}
	}
	slices.SortFunc(all, func(a, b Quarantined) int { return a.Addr.Compare(b.Addr) })
	return all, aliens, err
}

// ignoreExisting returns err, or nil if err says that the file exists: an earlier try has made it, or one in the same
// second.
func ignoreExisting(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
