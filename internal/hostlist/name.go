// SPDX-License-Identifier: Apache-2.0

package hostlist

import (
	"fmt"
	"sort"
)

// Name returns the name at an index, from 0: the inverse of Index. It panics if the index is out of
// range.
func (l List) Name(place int) string {
	if place >= 0 && place < l.len {
		i := sort.Search(len(l.names), func(i int) bool { return l.names[i].first > place }) - 1
		return l.names[i].name(place - l.names[i].first)
	}
	panic(fmt.Sprintf("place %d in a list of %d nodes", place, l.len))
}

// name is the inverse of place.
func (p *hostPattern) name(place int) string {
	if len(p.brackets) == 0 {
		return p.plain
	}
	texts := make([]string, len(p.brackets))
	for n := range p.brackets {
		i := (n + len(p.brackets) - 1) % len(p.brackets) // the last bracket counts fastest, then the first
		b := &p.brackets[i]
		texts[i] = b.name(place % b.len)
		place /= b.len
	}
	text := ""
	for _, t := range texts {
		text += t
	}
	return text
}

// name returns the text before the bracket and the number at an index.
func (b *hostBracket) name(place int) string {
	r := b.ranges[sort.Search(len(b.ranges), func(i int) bool { return b.ranges[i].first > place })-1]
	return fmt.Sprintf("%s%0*d", b.before, r.width, r.low+uint64(place-r.first))
}
