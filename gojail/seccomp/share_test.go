// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestGroups compares rules that begin with the same comparisons, too many for one jump among them, with their meaning.
func TestGroups(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	ops := slices.Sorted(maps.Keys(truth))
	for _, length := range []int{1, 3, 10, 40, 100} {
		p := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Architectures: []specs.Arch{specs.ArchX86_64, specs.ArchX86}}
		for errno := range uint(length) {
			rule := specs.LinuxSyscall{Names: []string{"mremap"}, Action: specs.ActErrno, ErrnoRet: &errno}
			for index := range uint(1 + random.IntN(4)) {
				op, value := specs.OpEqualTo, uint64(index)
				if random.IntN(4) == 0 {
					op, value = ops[random.IntN(len(ops))], random.Uint64N(4)
				}
				rule.Args = append(rule.Args, specs.LinuxSeccompArg{Index: index, Op: op, Value: value, ValueTwo: value})
			}
			p.Syscalls = append(p.Syscalls, rule)
		}
		program := compileFor(t, "amd64", p)
		numbers := []uint32{findNumber(t, "amd64", 0, "mremap"), findNumber(t, "amd64", 1, "mremap")}
		for range 2000 {
			args := []uint64{random.Uint64N(2), random.Uint64N(3), random.Uint64N(4), random.Uint64N(4)}
			want := uint32(eperm)
			for _, rule := range slices.Backward(p.Syscalls) {
				if !slices.ContainsFunc(rule.Args, func(a specs.LinuxSeccompArg) bool { return !truth[a.Op](args[a.Index], a.Value, a.ValueTwo) }) {
					want = unix.SECCOMP_RET_ERRNO | uint32(*rule.ErrnoRet)
				}
			}
			for i, abi := range machines["amd64"] {
				require.Equal(t, want, runProgram(t, program, abi.audit, numbers[i], args...), "%v of %v", args, p.Syscalls)
			}
		}
	}
}

// TestAbisShareAnswers requires the answers of each ABI where both have one alone, and where a long answer is shared over a distance.
func TestAbisShareAnswers(t *testing.T) {
	for machine, abis := range machines {
		p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Architectures: []specs.Arch{abis[0].oci, abis[1].oci}}
		program := compileFor(t, machine, p)
		for _, a := range abis {
			assert.EqualValues(t, allow, runProgram(t, program, a.audit, 5), a.oci)
		}
		assert.EqualValues(t, kill, runProgram(t, program, unix.AUDIT_ARCH_S390X, 5))
		for v := range uint64(400) {
			p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{"mremap"}, Action: specs.ActErrno,
				Args: []specs.LinuxSeccompArg{{Index: 2 + uint(v%2), Value: v + 1, Op: specs.OpMaskedEqual, ValueTwo: v + 1}}})
		}
		program = compileFor(t, machine, p)
		for i, a := range abis {
			mremap := findNumber(t, machine, i, "mremap")
			assert.EqualValues(t, eperm, runProgram(t, program, a.audit, mremap, 0, 0, 0, 2), a.oci)
			assert.EqualValues(t, allow, runProgram(t, program, a.audit, mremap-1), a.oci)
			assert.EqualValues(t, allow, runProgram(t, program, a.audit, mremap+1), a.oci)
		}
	}
}
