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

// Conflict marks the address before it gives it up: at no time is it free.
func (s *shared) Conflict(ctx context.Context, c Claim, addr netip.Addr, mac net.HardwareAddr) (netip.Addr, error) {
	if err := s.check(c); err != nil {
		return netip.Addr{}, err
	}
	if parsed, err := net.ParseMAC(mac.String()); err != nil || parsed.String() != mac.String() {
		return netip.Addr{}, fmt.Errorf("pool %s: %q is no link-layer address", s.name, mac)
	}
	what := fmt.Sprintf("replace %s, which %s uses, for %s", addr, mac, c.Owner)
	return locked(ctx, s, what, func() (netip.Addr, error) {
		l, err := s.leased(c.Owner, addr)
		if err != nil {
			return netip.Addr{}, err
		}
		if err := s.bounded(); err != nil {
			return netip.Addr{}, errors.Join(err, s.free(l))
		}
		q := Quarantined{Addr: addr, MAC: mac, Node: s.node, Time: s.now()}
		if err := notNew(os.Link(s.self(), s.path("quarantine", quarantineName(q)))); err != nil {
			return netip.Addr{}, err
		}
		if err := notNew(os.Link(s.self(), filepath.Join(s.home(addr), markName(q)))); err != nil {
			return netip.Addr{}, err
		}
		if err := s.free(l); err != nil {
			return netip.Addr{}, err
		}
		return s.acquire(ctx, c)
	})
}

// leased is the owner's lease of addr.
func (s *shared) leased(o Owner, addr netip.Addr) (Lease, error) {
	had, err := s.recorded(o)
	for _, l := range had {
		if _, there := os.Lstat(s.lease(l)); l.Addr == addr && there == nil {
			return l, nil
		}
	}
	if err == nil {
		err = errors.New("the address is not leased by this job")
	}
	return Lease{}, err
}

// bounded refuses when this node finds other machines everywhere.
func (s *shared) bounded() error {
	all, _, err := s.quarantined()
	if err != nil {
		return err
	}
	mine := slices.DeleteFunc(all, func(q Quarantined) bool {
		return q.Node != s.node || s.now().After(q.until())
	})
	if len(mine) < maxConflicts {
		return nil
	}
	return fmt.Errorf("%w: this node finds %d addresses in use; is the VLAN right, does a router answer for all (proxy ARP)?", ErrConflict, len(mine)+1)
}

// expire ends the quarantines that are over. The mark goes first: while the list has
// the quarantine, the mark can be found. The mark's name holds its time, so a newer
// one is never hit.
func (s *shared) expire() error {
	all, _, err := s.quarantined()
	if err != nil {
		return err
	}
	for _, q := range all {
		if s.now().After(q.until()) {
			if err := s.lift(q); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *shared) lift(q Quarantined) error {
	if err := gone(os.Remove(filepath.Join(s.home(q.Addr), markName(q)))); err != nil {
		return err
	}
	if err := s.vacate(q.Addr); err != nil {
		return err
	}
	return gone(os.Remove(s.path("quarantine", quarantineName(q))))
}

func (s *shared) Lift(ctx context.Context, addr netip.Addr) error {
	_, err := locked(ctx, s, "end the quarantine of "+addr.String(), func() (struct{}, error) {
		all, _, err := s.quarantined()
		for _, q := range all {
			if q.Addr == addr && err == nil {
				err = s.lift(q)
			}
		}
		return struct{}{}, err
	})
	return err
}

func (s *shared) Quarantine(ctx context.Context) ([]Quarantined, error) {
	var aliens error
	all, err := locked(ctx, s, "list the quarantine", func() (all []Quarantined, err error) {
		all, aliens, err = s.quarantined()
		return all, err
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(q Quarantined) bool { return s.now().After(q.until()) }), aliens
}

// quarantined reads the list, by address; aliens are the lines about what is not gojail's.
func (s *shared) quarantined() (all []Quarantined, aliens, err error) {
	names, err := namesIn(s.path("quarantine"))
	for _, name := range names {
		if q, ok := parseQuarantine(name); ok {
			all = append(all, q)
		} else {
			aliens = errors.Join(aliens, s.alien("quarantine", name))
		}
	}
	slices.SortFunc(all, func(a, b Quarantined) int { return a.Addr.Compare(b.Addr) })
	return all, aliens, err
}

// notNew forgives a mark that an earlier try, or the same second, has made.
func notNew(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
