// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"hash/fnv"
	"iter"
	"net/netip"
	"path/filepath"
)

// blockBits is how many low bits of an address are left out of its block's name: 256
// addresses lie in one directory, so that listing one stays far below a millisecond.
const blockBits = 8

// blockOf is the first address of the block that a is in.
func blockOf(a netip.Addr) netip.Addr {
	p, _ := a.Prefix(a.BitLen() - blockBits)
	return p.Addr()
}

// offset is a's place in its block.
func offset(a netip.Addr) int {
	b := a.As16()
	return int(b[15])
}

func (s *shared) path(parts ...string) string {
	return filepath.Join(append([]string{s.root}, parts...)...)
}

func (s *shared) block(a netip.Addr) string { return s.path("addresses", blockOf(a).String()) }
func (s *shared) home(a netip.Addr) string  { return filepath.Join(s.block(a), a.String()) }
func (s *shared) full(block netip.Addr) string {
	return s.path("full", block.String())
}

// fresh is where a node prepares a lease: beside its target, so that the rename stays
// in one directory (Lustre refuses to rename a directory to another metadata server).
func (s *shared) fresh(a netip.Addr, node string) string {
	return filepath.Join(s.block(a), "new,"+node)
}
func (s *shared) record(l Lease) string { return s.path("nodes", l.Node, recordName(l)) }
func (s *shared) lease(l Lease) string  { return filepath.Join(s.home(l.Addr), leaseName(l)) }

// self is this node's empty file, of which all that it writes are hard links.
func (s *shared) self() string { return s.path("nodes", s.node, "self") }

// start spreads owners over the first 65 536 usable addresses, so that nodes rarely
// want the same one at once; a job that is requeued mostly finds its old one.
func (s *shared) start(o Owner) netip.Addr {
	sum := fnv.New64a()
	fmt.Fprint(sum, o)
	a, _ := s.usable.nth(sum.Sum64() % min(s.usable.size, 1<<16))
	return a
}

// blocks are the blocks with usable addresses, in order from start's and around.
func (s *shared) blocks(start netip.Addr) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		first := blockOf(start)
		for block, wrapped := first, false; ; {
			if !yield(block) {
				return
			}
			next, ok := s.usable.from(plus(block, 1<<blockBits-1).Next())
			if !ok {
				next, wrapped = s.usable.sorted[0].First, true
			}
			if block = blockOf(next); wrapped && !block.Less(first) {
				return
			}
		}
	}
}
