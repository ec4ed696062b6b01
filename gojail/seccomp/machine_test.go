// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// runProgram runs a program as the kernel does and returns its answer. It implements the few
// instructions that filters of this package and of libseccomp have.
func runProgram(t *testing.T, program code, audit, number uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]uint32, 16)
	data[0], data[1] = number, audit
	for i, arg := range args {
		data[4+2*i], data[5+2*i] = uint32(arg), uint32(arg>>32)
	}
	var acc uint32
	for pc := 0; pc < len(program); pc++ {
		ins := program[pc]
		branch := func(taken bool) {
			if taken {
				pc += int(ins.Jt)
			} else {
				pc += int(ins.Jf)
			}
		}
		switch ins.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			require.Zero(t, ins.K%4)
			acc = data[ins.K/4]
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			branch(acc == ins.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			branch(acc >= ins.K)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			branch(acc > ins.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			branch(acc&ins.K != 0)
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(ins.K)
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= ins.K
		case unix.BPF_RET | unix.BPF_K:
			return ins.K
		default:
			require.FailNow(t, "unknown instruction", "%+v at %d", ins, pc)
		}
	}
	require.FailNow(t, "the program ran off its end")
	return 0
}

func compileFor(t *testing.T, machine string, p *specs.LinuxSeccomp) code {
	t.Helper()
	program, err := compile(p, machines[machine])
	require.NoError(t, err)
	return program
}

// numbersOf has the numbers of each ABI of each machine that a test has asked for: reading the table takes long, and some tests ask
// thousands of times.
var numbersOf = map[string]map[string]uint32{}

// findNumber returns the number of the call at the i-th ABI of a machine.
func findNumber(t *testing.T, machine string, i int, name string) uint32 {
	t.Helper()
	key := fmt.Sprint(machine, " ", i)
	if numbersOf[key] == nil {
		numbersOf[key], _ = machines[machine][i].listNumbers()
	}
	n, ok := numbersOf[key][name]
	require.True(t, ok, "%s has no %s", machine, name)
	return n
}
