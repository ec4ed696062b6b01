// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h).
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

type code = []unix.SockFilter

// Compile returns the program for this machine: an array of struct sock_filter, 8 bytes each, at most
// 4096. The first matching rule for a system call decides. A rule for an unknown system call is ignored
// if it would allow the call, and an error if it would refuse it.
func Compile(p *specs.LinuxSeccomp) ([]byte, error) {
	program, err := compile(p, thisMachine())
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = binary.Write(&out, binary.NativeEndian, program)
	return out.Bytes(), err
}

func compile(p *specs.LinuxSeccomp, machine []abi) (code, error) {
	if len(machine) == 0 {
		return nil, fmt.Errorf("seccomp filters are not supported on %s; write seccomp = \"none\" for this jail",
			runtime.GOARCH)
	}
	if len(p.Flags) > 0 || p.ListenerPath != "" {
		return nil, fmt.Errorf("flags and listenerPath have no effect here; remove them from the profile")
	}
	if len(p.Architectures) > 0 && !slices.Contains(p.Architectures, machine[0].oci) {
		return nil, fmt.Errorf("the profile is not for this machine; add %s to its architectures", machine[0].oci)
	}
	var t tree
	other := t.addInstruction(returnValue(unix.SECCOMP_RET_KILL_PROCESS))
	for i, a := range slices.Backward(machine) {
		if i > 0 && !slices.Contains(p.Architectures, a.oci) {
			continue
		}
		spans, newest, err := a.compileSpans(p)
		if err != nil {
			return nil, err
		}
		// Without a search there is a single answer, which is next already.
		if search := t.addSearch(foldSpans(spans), newest+1); search < len(t.backward)-1 {
			t.addFarJump(search)
		}
		t.addInstruction(loadWord(offsetNumber))
		t.addFarJump(other) // a conditional jump has 8 bits, which is too short here
		other = t.addInstruction(jumpIf(unix.BPF_JEQ, a.audit, 1, 0))
	}
	t.addInstruction(loadWord(offsetArch))
	program := t.backward
	slices.Reverse(program)
	if len(program) > unix.BPF_MAXINSNS {
		return nil,
			fmt.Errorf("the profile compiles to %d instructions, but the kernel accepts %d; use fewer conditions",
				len(program), unix.BPF_MAXINSNS)
	}
	return program, nil
}

// compileSpans returns the answers to all system calls of one ABI, and the highest number that the profile names.
func (a abi) compileSpans(p *specs.LinuxSeccomp) (spans []span, newest uint32, err error) {
	rules, newest, err := a.readRules(p)
	if err != nil {
		return nil, 0, err
	}
	other, err := readAction(p.DefaultAction, p.DefaultErrnoRet)
	if err != nil {
		return nil, 0, err
	}
	add := func(first uint32, answer code) {
		if n := len(spans); n == 0 || !slices.Equal(spans[n-1].answer, answer) {
			spans = append(spans, span{first: first, answer: answer})
		}
	}
	for n := uint32(0); n <= newest; n++ {
		answer, err := compileRules(rules[n], other)
		if err != nil {
			return nil, 0, err
		}
		add(n, answer)
	}
	if p.DefaultAction == specs.ActErrno {
		other = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	}
	add(newest+1, code{returnValue(other)})
	for _, n := range slices.Sorted(maps.Values(a.private)) {
		if rules[n] == nil {
			continue
		}
		answer, err := compileRules(rules[n], other)
		if err != nil {
			return nil, 0, err
		}
		add(n, answer)
		add(n+1, code{returnValue(other)})
	}
	if a.x32 {
		add(x32Bit, code{returnValue(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))})
	}
	return spans, newest, nil
}

// readRules returns the profile's rules by system call number, in the profile's order, and the highest number that the
// profile names, except for private ones.
func (a abi) readRules(p *specs.LinuxSeccomp) (rules map[uint32][]rule, newest uint32, err error) {
	numbers, known := a.listNumbers()
	rules = map[uint32][]rule{}
	for _, from := range p.Syscalls {
		for _, name := range from.Names {
			n, ok := numbers[name]
			if !ok {
				if !known[name] && from.Action != specs.ActAllow && from.Action != specs.ActLog {
					return nil, 0, fmt.Errorf("the profile refuses %q, which is not a system call; is it misspelt?",
						name)
				}
				continue
			}
			r, err := a.readRule(name, from)
			if err != nil {
				return nil, 0, err
			}
			rules[n] = append(rules[n], r)
			if n < privateBase {
				newest = max(newest, n)
			}
		}
	}
	return rules, newest, nil
}

func loadWord(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jumpIf returns a conditional jump that skips yes or no instructions.
func jumpIf(op uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

// jumpAlways returns an unconditional jump.
func jumpAlways(skip int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(skip)}
}

func returnValue(value uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
}
