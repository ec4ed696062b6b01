// SPDX-License-Identifier: Apache-2.0

package hostlist

import "fmt"

// Name returns the name at an index, from 0: the inverse of Index. It panics if the index is out of
// range.
func (l List) Name(place int) string {
	for i := range l.names {
		if p := &l.names[i]; place < p.first+p.len {
			return p.name(place - p.first)
		}
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
	r := b.ranges[0]
	for _, next := range b.ranges {
		if next.first <= place {
			r = next
		}
	}
	return fmt.Sprintf("%s%0*d", b.before, r.width, r.low+uint64(place-r.first))
}
