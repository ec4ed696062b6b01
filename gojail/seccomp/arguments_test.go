// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"maps"
	"slices"
	"strings"
	"testing"

	moby "github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDefaultComparesKnownArguments lists what the default profile compares, for tasks without
// and with capabilities: a new release of the profile may compare an argument whose width in the
// kernel has not been reviewed.
func TestDefaultComparesKnownArguments(t *testing.T) {
	type argument struct {
		name  string
		index uint
	}
	reviewed := map[argument]int{
		{"socket", 0}:      4, // int family, int type, int protocol, net/socket.c
		{"socket", 1}:      4,
		{"socket", 2}:      4,
		{"socketpair", 0}:  4, // likewise
		{"socketpair", 1}:  4,
		{"socketpair", 2}:  4,
		{"setsockopt", 1}:  4, // int level, int optname, net/socket.c
		{"setsockopt", 2}:  4,
		{"ioctl", 1}:       4, // unsigned int cmd, fs/ioctl.c
		{"personality", 0}: 4, // unsigned int personality, kernel/exec_domain.c
		{"unshare", 0}:     8, // unsigned long, kernel/fork.c
		{"clone", 0}:       4, // lower_32_bits(clone_flags), kernel/fork.c
	}
	compared := map[argument]int{}
	for _, caps := range [][]string{nil, slices.Collect(maps.Keys(listCapabilities(t)))} {
		p, err := Default(caps)
		require.NoError(t, err)
		for _, rule := range p.Syscalls {
			for _, name := range rule.Names {
				for _, arg := range rule.Args {
					bytes, err := abi{wide: true}.argumentWidth(name, arg.Index)
					require.NoError(t, err)
					require.Less(t, int(arg.Index), len(argumentWidths[name]), "%s has no such argument", name)
					compared[argument{name, arg.Index}] = bytes
				}
			}
		}
	}
	assert.Equal(t, reviewed, compared)
}

// listCapabilities returns the capabilities that the profile's conditions name.
func listCapabilities(t *testing.T) map[string]bool {
	t.Helper()
	caps := map[string]bool{}
	for _, rule := range moby.DefaultProfile().Syscalls {
		if rule.Includes != nil {
			for _, name := range rule.Includes.Caps {
				caps[name] = true
			}
		}
	}
	require.Contains(t, caps, "CAP_SYS_ADMIN")
	return caps
}

// TestArgumentTable: every 64-bit call has a row.
func TestArgumentTable(t *testing.T) {
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		digits, ok := argumentWidths[words[0]]
		assert.Equal(t, words[1] != "-" || words[3] != "-", ok, words[0])
		assert.LessOrEqual(t, len(digits), 6, words[0])
		assert.Empty(t, strings.Trim(digits, "248"), words[0])
	}
	for name, digits := range map[string]string{"socket": "444", "ioctl": "448", "prctl": "48888", "keyctl": "48888",
		"fcntl": "448", "clone": "48888", "unshare": "8", "setns": "44", "chmod": "82", "openat": "4842", "mmap": "888848"} {
		assert.Equal(t, digits, argumentWidths[name], name)
	}
}

// TestUnseenBits: only those bits of a narrow argument are compared that the kernel uses, and a
// value may be written as the negative number that it is.
func TestUnseenBits(t *testing.T) {
	for _, test := range []struct {
		name  string
		index uint
		bytes map[string][]int // by machine and ABI
	}{
		{"socket", 0, map[string][]int{"amd64": {4, 4}, "arm64": {4}}},
		{"openat", 3, map[string][]int{"amd64": {2, 2}, "arm64": {2}}},
		{"setuid", 0, map[string][]int{"amd64": {4, 2}, "arm64": {4}}},
		{"setuid32", 0, map[string][]int{"amd64": {0, 4}}},
	} {
		for machine, widths := range test.bytes {
			for i, bytes := range widths {
				if bytes > 0 {
					tryUnseenBits(t, machine, i, test.name, test.index, bytes)
				}
			}
		}
	}
}

func tryUnseenBits(t *testing.T, machine string, i int, name string, index uint, bytes int) {
	t.Helper()
	a, seen := machines[machine][i], ^uint64(0)>>(64-8*bytes)
	for op, holds := range truth {
		for _, v := range []uint64{0, 1, 7, 8, 40, seen, ^uint64(0), ^uint64(1)} {
			p := newProfile(specs.LinuxSeccompArg{Index: index, Value: v, ValueTwo: v & 41, Op: op})
			p.Syscalls[0].Names, p.Architectures = []string{name}, []specs.Arch{machines[machine][0].oci, a.oci}
			program := compileFor(t, machine, p)
			for _, low := range []uint64{0, 1, 8, 39, 40, 41, seen - 1, seen} {
				for _, high := range []uint64{0, seen + 1, 0xdeadbeef << 32, ^seen} {
					args := make([]uint64, 6)
					args[index] = low | high
					want := uint32(eperm)
					if holds(low, v&seen, v&41&seen) {
						want = allow
					}
					got := runProgram(t, program, a.audit, findNumber(t, machine, i, name), args...)
					require.Equal(t, want, got, "%s %s %s %#x with %#x", a.oci, name, op, v, low|high)
				}
			}
		}
	}
}

// TestUnknownArguments: the width of an argument that the table lacks is an error, not a guess.
func TestUnknownArguments(t *testing.T) {
	_, err := abi{wide: true}.argumentWidth("new_call", 0)
	assert.EqualError(t, err, `a rule compares arguments of "new_call", whose width in the kernel is unknown; remove the comparison`)
	width, err := abi{}.argumentWidth("new_call", 0)
	require.NoError(t, err)
	assert.Equal(t, 4, width, "of a 32-bit call")
}
