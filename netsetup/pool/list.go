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

// list is the content of a part of the directory.
type list struct {
	leases     []Lease
	quarantine []Quarantined
	aliens     error // lines about files that gojail did not write
}

// readLeases returns the leases of all addresses.
func (s *shared) readLeases(ctx context.Context) (list, error) {
	blocks, err := listNames(s.joinPath("addresses"))
	if err != nil {
		return list{}, err
	}
	var leases []Lease
	var problems []error
	for _, block := range blocks {
		base, ok := parseAddr(block)
		if !ok || blockOf(base) != base {
			problems = append(problems, s.alienError("addresses", block))
			continue
		}
		names, err := listNames(s.joinPath("addresses", block))
		if err != nil {
			return list{}, err
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return list{}, err
			}
			if node, ok := strings.CutPrefix(name, "new,"); ok && isWord(node) {
				continue
			}
			addr, ok := parseAddr(name)
			if !ok || blockOf(addr) != base {
				problems = append(problems, s.alienError("addresses", block, name))
				continue
			}
			found, err := s.readLeasesOf(addr)
			leases = append(leases, found...)
			problems = append(problems, err)
		}
	}
	slices.SortFunc(leases, func(a, b Lease) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(formatLeaseName(a), formatLeaseName(b)))
	})
	return list{leases: leases, aliens: errors.Join(problems...)}, nil
}

// readLeasesOf reads an address's directory: a lease, a quarantine mark, or both while the
// owner changes to another address.
func (s *shared) readLeasesOf(addr netip.Addr) ([]Lease, error) {
	entries, err := os.ReadDir(s.addressPath(addr))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, s.alienError("addresses", blockOf(addr).String(), addr.String())
	}
	var leases []Lease
	var problems []error
	for _, e := range entries {
		l, ok := parseLeaseName(addr, e.Name())
		switch {
		case isMark(e.Name()):
		case !ok || !e.Type().IsRegular():
			problems = append(problems, s.alienError("addresses", blockOf(addr).String(), addr.String(), e.Name()))
		default:
			leases = append(leases, l)
		}
	}
	return leases, errors.Join(problems...)
}
