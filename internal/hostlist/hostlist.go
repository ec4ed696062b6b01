// SPDX-License-Identifier: Apache-2.0

// Package hostlist parses lists of names as Slurm writes them: "gpu[01-04,7],login". It is pure. Order
// and range limits agree with `scontrol show hostnames` (hostlist.c of Slurm); forms that Slurm accepts
// but never writes are errors.
package hostlist

import "strings"

// List is a list of node names as Slurm writes them: "gpu[01-04,7],login". It is stored as ranges, so a
// list of a million names is as small as one of ten. The zero value is the empty list.
type List struct {
	text  string
	names []hostPattern
	len   int
}

// hostPattern is one part of the list, between commas: a plain name, or alternating text and brackets,
// with a bracket at the end.
type hostPattern struct {
	plain    string // only without brackets
	brackets []hostBracket
	first    int // index in the list of its first name
	len      int
}

// hostBracket is "n[1-3,07]" with the text before it.
type hostBracket struct {
	before string
	ranges []hostRange
	len    int
}

// hostRange is "01-04" in a bracket.
type hostRange struct {
	low, high uint64
	width     int // digits of low as written: shorter numbers are padded with zeros
	first     int // index of low in its bracket
}

// String returns the list as it was written.
func (l List) String() string { return l.text }

// Len returns the number of names. A duplicate name counts twice.
func (l List) Len() int { return l.len }

// Contains reports whether node is in the list.
func (l List) Contains(node string) bool {
	_, in := l.Index(node)
	return in
}

// Index returns the index of node, from 0, in the order of `scontrol show hostnames`: as written, where
// the last bracket of a name counts fastest, then the first, the second and so on. A duplicate name has
// its first index.
func (l List) Index(node string) (int, bool) {
	for i := range l.names {
		p := &l.names[i]
		if len(p.brackets) == 0 {
			if p.plain == node {
				return p.first, true
			}
			continue
		}
		if at := p.find(node, nil); at >= 0 {
			return p.first + at, true
		}
	}
	return 0, false
}

// find returns the lowest index of a name in the pattern, or -1. rest is the text after the brackets
// whose values are in places. Without text between two brackets, a name can be parsed in several ways.
func (p *hostPattern) find(rest string, places []int) int {
	if len(places) == len(p.brackets) {
		if rest != "" {
			return -1
		}
		return p.place(places)
	}
	b := &p.brackets[len(places)]
	rest, found := strings.CutPrefix(rest, b.before)
	if !found {
		return -1
	}
	best := -1
	for n := 1; n <= len(rest) && n <= digitsMax && isDigit(rest[n-1]); n++ {
		at := b.find(rest[:n])
		if at < 0 {
			continue
		}
		if all := p.find(rest[n:], append(places, at)); all >= 0 && (best < 0 || all < best) {
			best = all
		}
	}
	return best
}

// place returns the index in the pattern of the name with the given indexes in its brackets.
func (p *hostPattern) place(places []int) int {
	last := len(places) - 1
	at := 0
	for i := last - 1; i >= 0; i-- {
		at = at*p.brackets[i].len + places[i]
	}
	return at*p.brackets[last].len + places[last]
}

// find returns the index of a number in the bracket, or -1.
func (b *hostBracket) find(digits string) int {
	n := number(digits)
	for _, r := range b.ranges {
		written := len(digits) == r.width || len(digits) > r.width && digits[0] != '0'
		if written && r.low <= n && n <= r.high {
			return r.first + int(n-r.low)
		}
	}
	return -1
}

// number parses at most digitsMax digits.
func number(digits string) uint64 {
	var n uint64
	for i := range len(digits) {
		n = n*10 + uint64(digits[i]-'0')
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
