// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"hash/fnv"
	"iter"
	"net/netip"
	"path/filepath"
)

// blockBits is the number of low bits of an address that its block's name leaves out: 256
// addresses lie in one directory, so that listing a directory takes far less than a
// millisecond.
const blockBits = 8

// blockOf returns the first address of a's block.
func blockOf(a netip.Addr) netip.Addr {
	p, _ := a.Prefix(a.BitLen() - blockBits)
	return p.Addr()
}

// offsetInBlock returns the position of a in its block.
func offsetInBlock(a netip.Addr) int {
	b := a.As16()
	return int(b[15])
}

func (s *shared) joinPath(parts ...string) string {
	return filepath.Join(append([]string{s.root}, parts...)...)
}

func (s *shared) blockPath(a netip.Addr) string   { return s.joinPath("addresses", blockOf(a).String()) }
func (s *shared) addressPath(a netip.Addr) string { return filepath.Join(s.blockPath(a), a.String()) }
func (s *shared) fullMarkPath(block netip.Addr) string {
	return s.joinPath("full", block.String())
}

// freshPath returns the directory in which a node prepares a lease. It lies beside its
// target, so that the rename stays in one directory (Lustre refuses to rename a directory to
// another metadata server).
func (s *shared) freshPath(a netip.Addr, node string) string {
	return filepath.Join(s.blockPath(a), "new,"+node)
}
func (s *shared) recordPath(l Lease) string { return s.joinPath("nodes", l.Node, formatRecordName(l)) }
func (s *shared) leasePath(l Lease) string {
	return filepath.Join(s.addressPath(l.Addr), formatLeaseName(l))
}

// selfPath returns the path of this node's empty file, of which all its other files are hard
// links.
func (s *shared) selfPath() string { return s.joinPath("nodes", s.node, "self") }

// pickStart returns the address at which the search for an owner starts. It spreads owners
// over the first 65 536 usable addresses, so that nodes rarely try the same one at once; a
// requeued job usually gets its previous address.
func (s *shared) pickStart(o Owner) netip.Addr {
	sum := fnv.New64a()
	fmt.Fprint(sum, o)
	a, _ := s.usable.findNth(sum.Sum64() % min(s.usable.size, 1<<16))
	return a
}

// iterateBlocks returns the blocks with usable addresses, in cyclic order from the block of
// start.
func (s *shared) iterateBlocks(start netip.Addr) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		first := blockOf(start)
		for block, wrapped := first, false; ; {
			if !yield(block) {
				return
			}
			next, ok := s.usable.findFrom(addOffset(block, 1<<blockBits-1).Next())
			if !ok {
				next, wrapped = s.usable.sorted[0].First, true
			}
			if block = blockOf(next); wrapped && !block.Less(first) {
				return
			}
		}
	}
}
