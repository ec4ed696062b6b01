// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"runtime"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	allow = unix.SECCOMP_RET_ALLOW
	kill  = unix.SECCOMP_RET_KILL_PROCESS
	eperm = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	nosys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// TestComparisons tries each comparison with values around the bounds of both words.
func TestComparisons(t *testing.T) {
	values := []uint64{0, 1, 2, 7, 8, 9, 1<<32 - 1, 1 << 32, 1<<32 + 8, 8 << 32, 1<<63 + 8, 1<<64 - 1}
	for op, holds := range truth {
		for _, v := range values {
			for _, two := range []uint64{0, 8, 1 << 32, v} {
				p := newProfile(specs.LinuxSeccompArg{Index: 3, Value: v, ValueTwo: two, Op: op})
				p.Architectures = []specs.Arch{specs.ArchX86_64, specs.ArchX86}
				program := compileFor(t, "amd64", p)
				for _, arg := range values {
					for i, abi := range machines["amd64"] {
						a, b, c := arg, v, two
						if !abi.wide {
							a, b, c = uint64(uint32(a)), uint64(uint32(b)), uint64(uint32(c))
						}
						want := eperm
						if holds(a, b, c) {
							want = allow
						}
						got := runProgram(t, program, abi.audit, findNumber(t, "amd64", i, "mremap"), 0, 0, 0, arg)
						require.Equal(t, want, got, "%s %#x %#x with %#x, ABI %d", op, v, two, arg, i)
					}
				}
			}
		}
	}
}

// truth is what the comparisons mean.
var truth = map[specs.LinuxSeccompOperator]func(arg, v, two uint64) bool{
	specs.OpEqualTo:      func(arg, v, _ uint64) bool { return arg == v },
	specs.OpNotEqual:     func(arg, v, _ uint64) bool { return arg != v },
	specs.OpLessThan:     func(arg, v, _ uint64) bool { return arg < v },
	specs.OpLessEqual:    func(arg, v, _ uint64) bool { return arg <= v },
	specs.OpGreaterEqual: func(arg, v, _ uint64) bool { return arg >= v },
	specs.OpGreaterThan:  func(arg, v, _ uint64) bool { return arg > v },
	specs.OpMaskedEqual:  func(arg, v, two uint64) bool { return arg&v == two },
}

// newProfile returns a profile that allows mremap if args hold.
func newProfile(args ...specs.LinuxSeccompArg) *specs.LinuxSeccomp {
	return &specs.LinuxSeccomp{
		DefaultAction: specs.ActErrno,
		Syscalls:      []specs.LinuxSyscall{{Names: []string{"mremap"}, Action: specs.ActAllow, Args: args}},
	}
}

func TestSeveralArguments(t *testing.T) {
	mremap := findNumber(t, "amd64", 0, "mremap")
	is := func(index uint, value uint64) specs.LinuxSeccompArg {
		return specs.LinuxSeccompArg{Index: index, Value: value, Op: specs.OpEqualTo}
	}
	all := compileFor(t, "amd64", newProfile(is(0, 1), is(1, 2), is(5, 3)))
	assert.Equal(t, allow, int(runProgram(t, all, unix.AUDIT_ARCH_X86_64, mremap, 1, 2, 0, 0, 0, 3)))
	for _, args := range [][]uint64{{0, 2, 0, 0, 0, 3}, {1, 0, 0, 0, 0, 3}, {1, 2, 3}} {
		assert.Equal(t, eperm, runProgram(t, all, unix.AUDIT_ARCH_X86_64, mremap, args...), "%v", args)
	}
	// The same argument twice: each for itself.
	any := compileFor(t, "amd64", newProfile(is(0, 1), is(0, 2)))
	for arg, want := range map[uint64]uint32{0: eperm, 1: allow, 2: allow, 3: eperm} {
		assert.Equal(t, want, runProgram(t, any, unix.AUDIT_ARCH_X86_64, mremap, arg))
	}
}

// TestManyValues: rules that differ only in a value are one row of comparisons, and as many
// rows as jumps and high words make of them.
func TestManyValues(t *testing.T) {
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Architectures: []specs.Arch{specs.ArchX86_64, specs.ArchX86}}
	errno := uint(unix.EDOM)
	add := func(value uint64, index uint, action specs.LinuxSeccompAction, errno *uint) {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{"mremap"}, Action: action, ErrnoRet: errno,
			Args: []specs.LinuxSeccompArg{{Index: index, Value: value, Op: specs.OpEqualTo}}})
	}
	for v := range uint64(450) {
		add(3*v, 0, specs.ActAllow, nil)
	}
	add(7<<32, 0, specs.ActAllow, nil)
	add(7<<32|1, 0, specs.ActAllow, nil)
	add(7<<32|8, 0, specs.ActLog, nil)
	add(8, 0, specs.ActLog, nil)
	add(2, 1, specs.ActAllow, nil)
	add(4, 0, specs.ActErrno, &errno)
	add(5, 0, specs.ActErrno, &errno)
	add(7, 0, specs.ActErrno, nil)
	program := compileFor(t, "amd64", p)
	assert.Less(t, len(program), 1000)
	for i, abi := range machines["amd64"] {
		mremap := findNumber(t, "amd64", i, "mremap")
		for v := range uint64(1360) {
			want := uint32(eperm)
			switch {
			case v%3 == 0 && v < 3*450, v == 1 && !abi.wide:
				want = allow
			case v == 8:
				want = unix.SECCOMP_RET_LOG
			case v == 4, v == 5:
				want = unix.SECCOMP_RET_ERRNO | uint32(unix.EDOM)
			}
			require.Equal(t, want, runProgram(t, program, abi.audit, mremap, v), "%d, ABI %d", v, i)
		}
		assert.EqualValues(t, allow, runProgram(t, program, abi.audit, mremap, 7<<32))
		assert.EqualValues(t, allow, runProgram(t, program, abi.audit, mremap, 1, 2))
	}
	assert.Equal(t, eperm, runProgram(t, program, unix.AUDIT_ARCH_X86_64, findNumber(t, "amd64", 0, "mremap"), 7<<32|3))
	assert.Equal(t, eperm, runProgram(t, program, unix.AUDIT_ARCH_X86_64, findNumber(t, "amd64", 0, "mremap"), 3<<32))
}

// TestExceptions: a system call number may have another answer than its neighbours.
func TestExceptions(t *testing.T) {
	refused := func(n uint32) bool { return n%2 == 1 && n != 41 || n == 100 || n == 300 }
	numbers, _ := machines["amd64"][0].listNumbers()
	for _, first := range []specs.LinuxSeccompAction{specs.ActAllow, specs.ActLog} {
		p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow}
		for name, n := range numbers {
			if refused(n) {
				p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{name}, Action: specs.ActErrno})
			} else if n < 10 {
				p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{name}, Action: first})
			}
		}
		program := compileFor(t, "amd64", p)
		for _, n := range numbers {
			want, err := readAction(specs.ActAllow, nil)
			if refused(n) {
				want, err = readAction(specs.ActErrno, nil)
			} else if n < 10 {
				want, err = readAction(first, nil)
			}
			require.NoError(t, err)
			require.Equal(t, want, runProgram(t, program, unix.AUDIT_ARCH_X86_64, n), n)
		}
	}
}

func TestFirstRuleWins(t *testing.T) {
	errno := uint(22)
	p := newProfile(specs.LinuxSeccompArg{Index: 0, Value: 5, Op: specs.OpEqualTo})
	p.Syscalls = append(p.Syscalls,
		specs.LinuxSyscall{Names: []string{"mremap"}, Action: specs.ActErrno, ErrnoRet: &errno},
		specs.LinuxSyscall{Names: []string{"mremap"}, Action: specs.ActAllow})
	program := compileFor(t, "arm64", p)
	mremap := findNumber(t, "arm64", 0, "mremap")
	assert.Equal(t, allow, int(runProgram(t, program, unix.AUDIT_ARCH_AARCH64, mremap, 5)))
	assert.Equal(t, unix.SECCOMP_RET_ERRNO|uint32(22), runProgram(t, program, unix.AUDIT_ARCH_AARCH64, mremap, 6))
}

// TestLongProgram: answers are found over distances that a conditional jump cannot skip.
func TestLongProgram(t *testing.T) {
	numbers, _ := machines["amd64"][0].listNumbers()
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno}
	for name, n := range numbers {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{name}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Value: uint64(n) + 1, Op: specs.OpEqualTo}}})
	}
	program := compileFor(t, "amd64", p)
	require.Greater(t, len(program), 2000)
	for name, n := range numbers {
		assert.Equal(t, allow, int(runProgram(t, program, unix.AUDIT_ARCH_X86_64, n, uint64(n)+1)), name)
		assert.Equal(t, eperm, runProgram(t, program, unix.AUDIT_ARCH_X86_64, n, uint64(n)), name)
	}
}

// TestOtherConventions: a call that the profile refuses cannot be made by another ABI.
func TestOtherConventions(t *testing.T) {
	p := newProfile()
	mremap := findNumber(t, "amd64", 0, "mremap")
	program := compileFor(t, "amd64", p)
	assert.Equal(t, allow, int(runProgram(t, program, unix.AUDIT_ARCH_X86_64, mremap)))
	assert.Equal(t, nosys, runProgram(t, program, unix.AUDIT_ARCH_X86_64, mremap|x32Bit))
	assert.Equal(t, nosys, runProgram(t, program, unix.AUDIT_ARCH_X86_64, x32Bit))
	assert.Equal(t, kill, int(runProgram(t, program, unix.AUDIT_ARCH_I386, mremap)), "not listed")
	assert.Equal(t, kill, int(runProgram(t, program, unix.AUDIT_ARCH_ARM, 5)))
	assert.Equal(t, nosys, runProgram(t, program, unix.AUDIT_ARCH_X86_64, mremap+1), "newer than the profile")
	assert.Equal(t, eperm, runProgram(t, program, unix.AUDIT_ARCH_X86_64, mremap-1))

	p.DefaultAction, p.Syscalls[0].Action = specs.ActAllow, specs.ActErrno
	program = compileFor(t, "amd64", p)
	assert.Equal(t, eperm, runProgram(t, program, unix.AUDIT_ARCH_X86_64, mremap))
	assert.Equal(t, allow, int(runProgram(t, program, unix.AUDIT_ARCH_X86_64, mremap+1)))
	for _, n := range []uint32{0, mremap} {
		assert.Equal(t, nosys, runProgram(t, program, unix.AUDIT_ARCH_X86_64, n|x32Bit), "no way round a list of refusals")
	}
}

func TestRefusedProfiles(t *testing.T) {
	large := uint(4096)
	for want, change := range map[string]func(*specs.LinuxSeccomp){
		`the profile refuses "opanet", which is not a system call; is it misspelt?`: func(p *specs.LinuxSeccomp) {
			p.DefaultAction = specs.ActAllow
			p.Syscalls[0] = specs.LinuxSyscall{Names: []string{"opanet"}, Action: specs.ActErrno}
		},
		`unknown action "SCMP_ACT_NOTIFY" in the profile; SCMP_ACT_NOTIFY is not supported`: func(p *specs.LinuxSeccomp) {
			p.Syscalls[0].Action = specs.ActNotify
		},
		`unknown action "" in the profile; SCMP_ACT_NOTIFY is not supported`: func(p *specs.LinuxSeccomp) {
			p.DefaultAction = ""
		},
		`unknown comparison "~" in the profile`: func(p *specs.LinuxSeccomp) {
			p.Syscalls[0].Args = []specs.LinuxSeccompArg{{Op: "~"}}
		},
		"a rule compares argument 6; a system call has arguments 0 to 5": func(p *specs.LinuxSeccomp) {
			p.Syscalls[0].Args = []specs.LinuxSeccompArg{{Index: 6, Op: specs.OpEqualTo}}
		},
		`a rule compares argument 0 of "socket" with 0x100000028, but the kernel uses only 32 bits of it; use a value that fits`: func(p *specs.LinuxSeccomp) {
			p.Syscalls[0].Names = []string{"socket"}
			p.Syscalls[0].Args = []specs.LinuxSeccompArg{{Value: 1<<32 | 40, Op: specs.OpEqualTo}}
		},
		"errnoRet 4096 in the profile is not an error number; the maximum is 4095": func(p *specs.LinuxSeccomp) {
			p.DefaultErrnoRet = &large
		},
		"flags and listenerPath have no effect here; remove them from the profile": func(p *specs.LinuxSeccomp) {
			p.Flags = []specs.LinuxSeccompFlag{specs.LinuxSeccompFlagLog}
		},
		fmt.Sprintf("the profile is not for this machine; add %s to its architectures", machines[runtime.GOARCH][0].oci): func(p *specs.LinuxSeccomp) {
			p.Architectures = []specs.Arch{specs.ArchS390X}
		},
		"instructions, but the kernel accepts 4096; use fewer conditions": func(p *specs.LinuxSeccomp) {
			for v := range uint64(900) {
				p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{"read"}, Action: specs.ActAllow,
					Args: []specs.LinuxSeccompArg{{Index: uint(v % 6), Value: v, Op: specs.OpEqualTo}}})
			}
		},
	} {
		p := newProfile()
		change(p)
		_, err := Compile(p)
		assert.ErrorContains(t, err, want)
	}
}

// TestMachines: a rule that allows a call of other machines only is not an error.
func TestMachines(t *testing.T) {
	p := newProfile()
	p.Syscalls[0].Names = append(p.Syscalls[0].Names, "s390_runtime_instr", "set_tls")
	compileFor(t, "arm64", p)
	_, err := compile(p, nil)
	assert.ErrorContains(t, err, "write seccomp = \"none\" for this jail")
}
