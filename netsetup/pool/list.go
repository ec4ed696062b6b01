// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
)

func (s *shared) Leases(ctx context.Context) ([]Lease, error) {
	type list struct {
		leases []Lease
		aliens error
	}
	l, err := answered(ctx, s, "list the leases", func() (list, error) {
		return fresh(func() (list, error) {
			leases, aliens, err := s.leases(ctx)
			return list{leases, aliens}, err
		})
	})
	return l.leases, errors.Join(err, l.aliens)
}

// leases walks the addresses; aliens are the lines about what gojail did not write.
func (s *shared) leases(ctx context.Context) (leases []Lease, aliens, err error) {
	blocks, err := namesIn(s.path("addresses"))
	if err != nil {
		return nil, nil, err
	}
	var problems []error
	for _, block := range blocks {
		base, ok := parseAddr(block)
		if !ok || blockOf(base) != base {
			problems = append(problems, s.alien("addresses", block))
			continue
		}
		names, err := namesIn(s.path("addresses", block))
		if err != nil {
			return nil, nil, err
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			if node, ok := strings.CutPrefix(name, "new,"); ok && word(node) {
				continue
			}
			addr, ok := parseAddr(name)
			if !ok || blockOf(addr) != base {
				problems = append(problems, s.alien("addresses", block, name))
				continue
			}
			found, err := s.leasesOf(addr)
			leases = append(leases, found...)
			problems = append(problems, err)
		}
	}
	slices.SortFunc(leases, func(a, b Lease) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(leaseName(a), leaseName(b)))
	})
	return leases, errors.Join(problems...), nil
}

// leasesOf reads an address's directory: a lease, a quarantine, or both while the
// owner moves to another address.
func (s *shared) leasesOf(addr netip.Addr) ([]Lease, error) {
	entries, err := os.ReadDir(s.home(addr))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, s.alien("addresses", blockOf(addr).String(), addr.String())
	}
	var leases []Lease
	var problems []error
	for _, e := range entries {
		l, ok := parseLeaseName(addr, e.Name())
		switch {
		case isMark(e.Name()):
		case !ok || !e.Type().IsRegular():
			problems = append(problems, s.alien("addresses", blockOf(addr).String(), addr.String(), e.Name()))
		default:
			leases = append(leases, l)
		}
	}
	return leases, errors.Join(problems...)
}
