// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// argumentTable holds, for each 64-bit system call, a digit for each argument: the number of bytes that the
// kernel uses, "-" for none. The digits follow the types in include/linux/syscalls.h and SYSCALL_DEFINE, and
// are 4 as well if the call takes a long and truncates it at once: the flags of clone (lower_32_bits),
// the descriptors of mmap and readv and their relatives (fdget), the mode of mbind, the process of
// ptrace.
//
// An argument whose width depends on another one has 8: the last ones of ioctl, fcntl, prctl, keyctl and
// kcmp.
//
//go:embed arguments.txt
var argumentTable string

// argumentWidths are the rows of the table by the name of the system call.
var argumentWidths = readArguments(argumentTable)

func readArguments(text string) map[string]string {
	widths := map[string]string{}
	for line := range strings.Lines(text) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		widths[name] = strings.Trim(digits, "-")
	}
	return widths
}

// shortIDs are the system calls whose 32-bit form takes 16-bit user and group ids (kernel/uid16.c).
var shortIDs = []string{"chown", "fchown", "lchown", "setfsgid", "setfsuid", "setgid", "setregid", "setresgid",
	"setresuid", "setreuid", "setuid"}

// argumentWidth returns the number of bytes of an argument that the kernel uses.
func (a abi) argumentWidth(name string, index uint) (int, error) {
	digits, known := argumentWidths[name]
	switch {
	case !known && a.wide:
		return 0,
			fmt.Errorf("a rule compares arguments of %q, whose width in the kernel is unknown; remove the comparison",
				name)
	case index > 5:
		return 0, fmt.Errorf("a rule compares argument %d; a system call has arguments 0 to 5", index)
	}
	bytes := 8
	if index < uint(len(digits)) {
		bytes = int(digits[index] - '0')
	}
	if !a.wide && bytes == 4 && slices.Contains(shortIDs, name) {
		bytes = 2
	}
	if !a.wide {
		bytes = min(bytes, 4)
	}
	return bytes, nil
}

// comparison is one condition of a rule. Only the bits in seen are compared, because the kernel ignores the others.
type comparison struct {
	index      uint
	op         specs.LinuxSeccompOperator
	value, two uint64
	seen       uint64
}

// readComparison returns the meaning of a condition for a system call.
func (a abi) readComparison(name string, arg specs.LinuxSeccompArg) (comparison, error) {
	bytes, err := a.argumentWidth(name, arg.Index)
	if err != nil {
		return comparison{}, err
	}
	c := comparison{index: arg.Index, op: arg.Op, seen: ^uint64(0) >> (64 - 8*bytes)}
	limits := []uint64{arg.Value}
	if arg.Op == specs.OpMaskedEqual {
		limits[0] = arg.ValueTwo // the mask may have any bits
	}
	for _, v := range limits {
		negative := int64(v) < 0 && int64(v) >= -1<<(8*bytes-1)
		if a.wide && v > c.seen && !negative {
			return c, fmt.Errorf("a rule compares argument %d of %q with %#x, but the kernel uses only %d bits of "+
				"it; use a value that fits", arg.Index, name, v, 8*bytes)
		}
	}
	c.value, c.two = arg.Value&c.seen, arg.ValueTwo&c.seen
	return c, nil
}
