// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	moby "github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestReference compares each call, with arguments around every value that the profile
// compares with, to what libseccomp makes of the same profile.
func TestReference(t *testing.T) {
	reference := filepath.Join(t.TempDir(), "reference")
	if out, err := exec.Command("gcc", "-o", reference, "testdata/reference.c", "-l:libseccomp.so.2").CombinedOutput(); err != nil {
		t.Skipf("needs gcc and libseccomp.so.2: %s", out)
	}
	for _, caps := range [][]string{nil, {"CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_SYS_NICE", "CAP_SYS_CHROOT"}} {
		p, err := moby.GetDefaultProfile(newBoundedSpec(caps)) // without what we change
		require.NoError(t, err)
		p.Architectures = []specs.Arch{specs.ArchX86_64, specs.ArchX86, specs.ArchAARCH64, specs.ArchARM}
		for machine, abis := range machines {
			program := compileFor(t, machine, p)
			for _, a := range abis {
				theirs, lacks := compileByLibseccomp(t, reference, p, a)
				numbers, _ := a.listNumbers()
				seen := 0
				for name, n := range numbers {
					if n > 456 || slices.Contains(lacks, name) { // not known to libseccomp 2.5.4
						continue
					}
					for _, args := range listSamples(p, name) {
						seen++
						want := runProgram(t, theirs, a.audit, n, args...)
						require.Equal(t, want, runProgram(t, program, a.audit, n, args...), "%s %s %#x", a.oci, name, args)
						// libseccomp compares what the kernel drops, too.
						unseen := withUnseenBits(t, a, name, args)
						require.Equal(t, want, runProgram(t, program, a.audit, n, unseen...), "%s %s %#x", a.oci, name, unseen)
					}
				}
				assert.Greater(t, seen, 300)
				assert.Less(t, len(lacks), 100)
			}
		}
	}
}

// withUnseenBits returns args with all bits set that the kernel ignores.
func withUnseenBits(t *testing.T, a abi, name string, args []uint64) []uint64 {
	t.Helper()
	args = slices.Clone(args)
	for i := range args {
		bytes, err := a.argumentWidth(name, uint(i))
		require.NoError(t, err)
		if bytes < 8 {
			args[i] |= ^uint64(0) << (8 * bytes)
		}
	}
	return args
}

// listSamples returns argument lists around the values that the rules of a call compare with.
func listSamples(p *specs.LinuxSeccomp, name string) [][]uint64 {
	lists := [][]uint64{{}}
	for _, rule := range p.Syscalls {
		if !slices.Contains(rule.Names, name) {
			continue
		}
		for _, arg := range rule.Args {
			for _, v := range []uint64{arg.Value - 1, arg.Value, arg.Value + 1, arg.Value & -arg.Value, arg.Value | 1<<31} {
				args := make([]uint64, 6)
				args[arg.Index] = uint64(uint32(v)) // what a 32-bit call can have, too
				lists = append(lists, args)
			}
		}
	}
	return lists
}

// compileByLibseccomp returns libseccomp's filter for one ABI, and the names that libseccomp lacks.
func compileByLibseccomp(t *testing.T, reference string, p *specs.LinuxSeccomp, a abi) (program code, lacks []string) {
	t.Helper()
	operators := []specs.LinuxSeccompOperator{"", specs.OpNotEqual, specs.OpLessThan, specs.OpLessEqual,
		specs.OpEqualTo, specs.OpGreaterEqual, specs.OpGreaterThan, specs.OpMaskedEqual} // enum scmp_compare
	var in bytes.Buffer
	fmt.Fprintf(&in, "default %d %d\n", int32(a.audit), eperm)
	for _, rule := range p.Syscalls {
		value, err := readAction(rule.Action, rule.ErrnoRet)
		require.NoError(t, err)
		for _, name := range rule.Names {
			fmt.Fprintf(&in, "rule %d %s %d", value, name, len(rule.Args))
			for _, arg := range rule.Args {
				fmt.Fprintf(&in, " %d %d %d %d", arg.Index, slices.Index(operators, arg.Op), arg.Value, arg.ValueTwo)
			}
			in.WriteString("\n")
		}
	}
	cmd := exec.Command(reference)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &errs
	require.NoError(t, cmd.Run())
	program = make(code, out.Len()/8)
	require.NoError(t, binary.Read(&out, binary.NativeEndian, program))
	require.NotEmpty(t, program)
	return program, strings.Fields(errs.String())
}

// TestBytes: Compile returns the program as an array of struct sock_filter.
func TestBytes(t *testing.T) {
	p, err := Default(nil)
	require.NoError(t, err)
	text, err := Compile(p)
	require.NoError(t, err)
	program, err := compile(p, thisMachine())
	require.NoError(t, err)
	require.Len(t, text, 8*len(program))
	got := make(code, len(program))
	require.NoError(t, binary.Read(bytes.NewReader(text), binary.NativeEndian, got))
	assert.Equal(t, program, got)
	assert.EqualValues(t, unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, got[0].Code)
}
