// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// span is a row of call numbers, up to the next span's, that have the same answer, but for a few.
type span struct {
	first  uint32
	answer code
	but    []exception
}

// exception is one number within a span.
type exception struct {
	number uint32
	answer code
}

// mostExceptions of a span: each is a question more to all of its numbers.
const mostExceptions = 8

// fold makes an exception of each span of one number that lies within another: that is one
// question, and not the two of its bounds.
func fold(spans []span) (folded []span) {
	for i := 0; i < len(spans); i++ {
		if n := len(folded); n > 0 && i+1 < len(spans) && len(folded[n-1].but) < mostExceptions &&
			spans[i].first+1 == spans[i+1].first && slices.Equal(folded[n-1].answer, spans[i+1].answer) {
			folded[n-1].but = append(folded[n-1].but, exception{spans[i].first, spans[i].answer})
			i++
			continue
		}
		folded = append(folded, spans[i])
	}
	return folded
}

// tree is a program that is written from its end: a jump goes forward only, and what
// many spans answer is there once. The kernel takes the longer to install a filter the
// longer it is, and asks it about each call once to remember what it always permits
// (seccomp_cache_prepare in the kernel's seccomp.c).
type tree struct {
	backward code
}

// reach is how many instructions a conditional jump of 8 bits may skip, less a few that
// may come between.
const reach = 250

// search finds the answer of the number that is loaded, in a binary tree of spans. Of
// the numbers up to newest, of which all are asked about, each half has as many as can be.
func search(spans []span, newest uint32) code {
	var t tree
	t.search(fold(spans), newest+1)
	slices.Reverse(t.backward)
	return t.backward
}

// search is where the search among spans up to end begins: an index of backward.
func (t *tree) search(spans []span, end uint32) (at int) {
	if len(spans) == 1 {
		return t.leaf(spans[0])
	}
	middle := halveRange(spans, end)
	high := t.search(spans[middle:], end)
	low := t.near(t.search(spans[:middle], spans[middle].first))
	high = t.near(high)
	return t.add(jump(unix.BPF_JGE, spans[middle].first, t.skip(high), t.skip(low)))
}

// halveRange is the first span of the upper half.
func halveRange(spans []span, end uint32) int {
	best := 1
	distance := func(i int) uint32 {
		below := spans[i].first - spans[0].first
		above := max(end, spans[i].first) - spans[i].first // what is newer is not asked about
		return max(below, above) - min(below, above)
	}
	for i := range spans[1:] {
		if distance(i+1) < distance(best) {
			best = i + 1
		}
	}
	return best
}

// leaf is where the questions of one span begin.
func (t *tree) leaf(s span) (at int) {
	at = t.answer(s.answer)
	for _, e := range slices.Backward(s.but) {
		is := t.near(t.answer(e.answer))
		at = t.near(at)
		at = t.add(jump(unix.BPF_JEQ, e.number, t.skip(is), t.skip(at)))
	}
	return at
}

// answer is where the code of an answer begins.
func (t *tree) answer(c code) (at int) {
	backward := slices.Clone(c)
	slices.Reverse(backward)
	for i := max(0, len(t.backward)-reach); i+len(c) <= len(t.backward); i++ {
		if slices.Equal(t.backward[i:i+len(c)], backward) {
			return i + len(c) - 1
		}
	}
	t.backward = append(t.backward, backward...)
	return len(t.backward) - 1
}

func (t *tree) add(ins unix.SockFilter) (at int) {
	t.backward = append(t.backward, ins)
	return len(t.backward) - 1
}

// near is a place with a jump to one that is too far for a conditional jump.
func (t *tree) near(at int) int {
	if len(t.backward)-at-1 <= reach {
		return at
	}
	return t.add(far(len(t.backward) - at - 1))
}

// skip is for a conditional jump that is added next.
func (t *tree) skip(at int) uint8 { return uint8(len(t.backward) - at - 1) }
