// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"fmt"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// target is where a jump goes: to the next instruction, or out of the comparison.
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

// compare is the code of one comparison. The program sees an argument as two words;
// of a 32-bit call only the low one counts, and the low half of what it is compared with.
func (a abi) compare(arg specs.LinuxSeccompArg) ([]step, error) {
	if arg.Index > 5 {
		return nil, fmt.Errorf("a rule compares argument %d; a system call has 0 to 5", arg.Index)
	}
	const all = ^uint64(0)
	switch arg.Op {
	case specs.OpEqualTo:
		return a.equal(arg.Index, all, arg.Value, isTrue, isFalse), nil
	case specs.OpNotEqual:
		return a.equal(arg.Index, all, arg.Value, isFalse, isTrue), nil
	case specs.OpMaskedEqual:
		return a.equal(arg.Index, arg.Value, arg.ValueTwo, isTrue, isFalse), nil
	case specs.OpGreaterThan:
		return a.order(arg.Index, unix.BPF_JGT, arg.Value, isTrue, isFalse), nil
	case specs.OpGreaterEqual:
		return a.order(arg.Index, unix.BPF_JGE, arg.Value, isTrue, isFalse), nil
	case specs.OpLessThan:
		return a.order(arg.Index, unix.BPF_JGE, arg.Value, isFalse, isTrue), nil
	case specs.OpLessEqual:
		return a.order(arg.Index, unix.BPF_JGT, arg.Value, isFalse, isTrue), nil
	}
	return nil, fmt.Errorf("unknown comparison %q in the profile", arg.Op)
}

// equal asks whether argument & mask == value.
func (a abi) equal(index uint, mask, value uint64, yes, no target) (steps []step) {
	word := func(half int, mask, value uint32, yes, no target) {
		steps = append(steps, loadArg(index, half))
		if mask != ^uint32(0) {
			steps = append(steps, step{ins: unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask}})
		}
		steps = append(steps, step{jump(unix.BPF_JEQ, value, 0, 0), yes, no})
	}
	if a.wide && (mask>>32 != 0 || value>>32 != 0) {
		word(high, uint32(mask>>32), uint32(value>>32), next, no)
	}
	word(low, uint32(mask), uint32(value), yes, no)
	return steps
}

// among asks whether the argument is one of values, which have the same high word.
func (a abi) among(index uint, values []uint64) (steps []step) {
	if a.wide {
		steps = append(steps, loadArg(index, high), step{jump(unix.BPF_JEQ, uint32(values[0]>>32), 0, 0), next, isFalse})
	}
	steps = append(steps, loadArg(index, low))
	for _, v := range values {
		steps = append(steps, step{jump(unix.BPF_JEQ, uint32(v), 0, 0), isTrue, next})
	}
	steps[len(steps)-1].no = isFalse
	return steps
}

// order asks whether argument > value, or >=, as op says. The high word decides
// unless it is equal; then the low one does.
func (a abi) order(index uint, op uint16, value uint64, yes, no target) (steps []step) {
	if a.wide {
		steps = append(steps, loadArg(index, high),
			step{jump(unix.BPF_JGT, uint32(value>>32), 0, 0), yes, next},
			step{jump(unix.BPF_JEQ, uint32(value>>32), 0, 0), next, no})
	}
	return append(steps, loadArg(index, low), step{jump(op, uint32(value), 0, 0), yes, no})
}

const (
	low = iota
	high
)

// loadArg loads half of an argument, whichever of its halves the machine has first.
func loadArg(index uint, half int) step {
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // big-endian
		half = high - half
	}
	return step{ins: load(offsetArgs + 8*uint32(index) + 4*uint32(half))}
}

// settle turns targets into distances; rest instructions of the rule come behind it.
// The longest rule, of six arguments with at most 6 instructions each, and the longest row
// of values stay below the 255 that a jump can skip.
func settle(steps []step, rest int) code {
	var all code
	for i, s := range steps {
		behind := len(steps) - i - 1
		skip := [...]uint8{next: 0, isTrue: uint8(behind), isFalse: uint8(behind + rest)}
		s.ins.Jt, s.ins.Jf = skip[s.yes], skip[s.no]
		all = append(all, s.ins)
	}
	return all
}
