// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"fmt"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// target is the destination of a jump: the next instruction, or out of the comparison.
type target int

const (
	next target = iota
	isTrue
	isFalse
)

// step is an instruction whose jumps have no distance yet.
type step struct {
	ins     unix.SockFilter
	yes, no target
}

// compileSteps returns the code of one comparison. The program loads an argument as two words. It skips the high word
// if the kernel ignores that.
func (c comparison) compileSteps() ([]step, error) {
	switch c.op {
	case specs.OpEqualTo:
		return c.compileEqual(c.seen, c.value, isTrue, isFalse), nil
	case specs.OpNotEqual:
		return c.compileEqual(c.seen, c.value, isFalse, isTrue), nil
	case specs.OpMaskedEqual:
		return c.compileEqual(c.value, c.two, isTrue, isFalse), nil
	case specs.OpGreaterThan:
		return c.compileOrder(unix.BPF_JGT, isTrue, isFalse), nil
	case specs.OpGreaterEqual:
		return c.compileOrder(unix.BPF_JGE, isTrue, isFalse), nil
	case specs.OpLessThan:
		return c.compileOrder(unix.BPF_JGE, isFalse, isTrue), nil
	case specs.OpLessEqual:
		return c.compileOrder(unix.BPF_JGT, isFalse, isTrue), nil
	}
	return nil, fmt.Errorf("unknown comparison %q in the profile", c.op)
}

// isWide reports whether the kernel uses the high word.
func (c comparison) isWide() bool { return c.seen>>32 != 0 }

// compileEqual returns the code that tests whether argument & mask == value.
func (c comparison) compileEqual(mask, value uint64, yes, no target) (steps []step) {
	if c.isWide() && (mask>>32 != 0 || value>>32 != 0) {
		steps = append(steps, loadArgument(c.index, high)...)
		steps = append(steps, keepBits(uint32(mask>>32))...)
		steps = append(steps, step{jumpIf(unix.BPF_JEQ, uint32(value>>32), 0, 0), next, no})
	}
	steps = append(steps, loadArgument(c.index, low)...)
	steps = append(steps, keepBits(uint32(mask))...)
	return append(steps, step{jumpIf(unix.BPF_JEQ, uint32(value), 0, 0), yes, no})
}

// compileRow returns the code that tests whether the argument is one of the rules' values, which have the
// same high word.
func compileRow(rules []rule) (steps []step) {
	c := rules[0].comparisons[0]
	if c.isWide() {
		steps = append(loadArgument(c.index, high), step{jumpIf(unix.BPF_JEQ, uint32(c.value>>32), 0, 0), next,
			isFalse})
	}
	steps = append(steps, loadArgument(c.index, low)...)
	steps = append(steps, keepBits(uint32(c.seen))...)
	for _, r := range rules {
		steps = append(steps, step{jumpIf(unix.BPF_JEQ, uint32(r.comparisons[0].value), 0, 0), isTrue, next})
	}
	steps[len(steps)-1].no = isFalse
	return steps
}

// compileOrder returns the code that tests whether argument > value, or >=, by op, as unsigned numbers. The high
// word decides unless it is equal; then the low word decides.
func (c comparison) compileOrder(op uint16, yes, no target) (steps []step) {
	if c.isWide() {
		steps = append(loadArgument(c.index, high),
			step{jumpIf(unix.BPF_JGT, uint32(c.value>>32), 0, 0), yes, next},
			step{jumpIf(unix.BPF_JEQ, uint32(c.value>>32), 0, 0), next, no})
	}
	steps = append(steps, loadArgument(c.index, low)...)
	steps = append(steps, keepBits(uint32(c.seen))...)
	return append(steps, step{jumpIf(op, uint32(c.value), 0, 0), yes, no})
}

// keepBits returns the code that clears the bits of the loaded word that mask does not have.
func keepBits(mask uint32) []step {
	if mask == ^uint32(0) {
		return nil
	}
	return []step{{ins: unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask}}}
}

const (
	low = iota
	high
)

// loadArgument returns the code that loads half of an argument, in the byte order of the machine.
func loadArgument(index uint, half int) []step {
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // big-endian
		half = high - half
	}
	return []step{{ins: loadWord(offsetArgs + 8*uint32(index) + 4*uint32(half))}}
}

// resolveJumps converts targets to distances; rest instructions of the rule follow. The longest group, behind a
// comparison of at most 6 instructions, and the longest row of values stay below 255, the maximum distance of a
// jump.
func resolveJumps(steps []step, rest int) code {
	var all code
	for i, s := range steps {
		behind := len(steps) - i - 1
		skip := [...]uint8{next: 0, isTrue: uint8(behind), isFalse: uint8(behind + rest)}
		s.ins.Jt, s.ins.Jf = skip[s.yes], skip[s.no]
		all = append(all, s.ins)
	}
	return all
}
