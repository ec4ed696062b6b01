// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// span is a range of call numbers, up to the next span, with the same answer except for some numbers.
type span struct {
	first  uint32
	answer code
	but    []exception
}

// exception is one number in a span with another answer.
type exception struct {
	number uint32
	answer code
}

// mostExceptions is the limit of exceptions in a span: each one adds a test to all numbers of the span.
const mostExceptions = 8

// foldSpans turns each span of one number inside another span into an exception, which costs one test instead
// of two.
func foldSpans(spans []span) (folded []span) {
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

// tree is a program that is built from its end: jumps only go forward, and spans share the code of equal
// answers, as do the ABIs. The kernel takes longer to install a longer filter, and runs it once for each system
// call to remember which are always permitted (seccomp_cache_prepare in the kernel's seccomp.c).
type tree struct {
	backward code
}

// reach is the maximum distance of a conditional jump, 8 bits, less a reserve for inserted instructions.
const reach = 250

// addSearch adds a binary search among spans for the loaded number, and returns its index in backward. Each half has
// about as many of the numbers up to end as the other.
func (t *tree) addSearch(spans []span, end uint32) (at int) {
	if len(spans) == 1 {
		return t.addLeaf(spans[0])
	}
	middle := findMiddle(spans, end)
	high := t.addSearch(spans[middle:], end)
	low := t.addNearJump(t.addSearch(spans[:middle], spans[middle].first))
	high = t.addNearJump(high)
	return t.addInstruction(jumpIf(unix.BPF_JGE, spans[middle].first, t.countSkipped(high), t.countSkipped(low)))
}

// findMiddle returns the first span of the upper half.
func findMiddle(spans []span, end uint32) int {
	best := 1
	distance := func(i int) uint32 {
		below := spans[i].first - spans[0].first
		above := max(end, spans[i].first) - spans[i].first // newer numbers are rare
		return max(below, above) - min(below, above)
	}
	for i := range spans[1:] {
		if distance(i+1) < distance(best) {
			best = i + 1
		}
	}
	return best
}

// addLeaf adds the tests of one span and returns their index.
func (t *tree) addLeaf(s span) (at int) {
	at = t.addAnswer(s.answer)
	for _, e := range slices.Backward(s.but) {
		is := t.addNearJump(t.addAnswer(e.answer))
		at = t.addNearJump(at)
		at = t.addInstruction(jumpIf(unix.BPF_JEQ, e.number, t.countSkipped(is), t.countSkipped(at)))
	}
	return at
}

// addAnswer returns the index of the code of an answer, and adds it, or a jump to it, if it is not in reach.
func (t *tree) addAnswer(c code) (at int) {
	backward := slices.Clone(c)
	slices.Reverse(backward)
	from := 0
	if len(c) == 1 {
		from = max(0, len(t.backward)-reach) // as short as the jump
	}
	for i := len(t.backward) - len(c); i >= from; i-- {
		if slices.Equal(t.backward[i:i+len(c)], backward) {
			return t.addNearJump(i + len(c) - 1)
		}
	}
	t.backward = append(t.backward, backward...)
	return len(t.backward) - 1
}

func (t *tree) addInstruction(ins unix.SockFilter) (at int) {
	t.backward = append(t.backward, ins)
	return len(t.backward) - 1
}

// addNearJump returns at, or the index of a jump to it if it is too far for a conditional jump.
func (t *tree) addNearJump(at int) int {
	if len(t.backward)-at-1 <= reach {
		return at
	}
	return t.addFarJump(at)
}

func (t *tree) addFarJump(at int) int { return t.addInstruction(jumpAlways(len(t.backward) - at - 1)) }

// countSkipped returns the distance for a conditional jump that is added next.
func (t *tree) countSkipped(at int) uint8 { return uint8(len(t.backward) - at - 1) }
