// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// argumentTable has, for each 64-bit call, one digit for each argument: the bytes of it
// that the kernel looks at, "-" for none. They are the types of include/linux/syscalls.h and
// of SYSCALL_DEFINE, and 4 as well where the call takes a long and narrows it at once:
// the flags of clone (lower_32_bits), the descriptors of mmap and readv and their
// relatives (fdget), the mode of mbind, the process of ptrace.
//
// An argument that is narrowed by what another one asks for has 8: the last ones of
// ioctl, fcntl, prctl, keyctl and kcmp.
//
//go:embed arguments.txt
var argumentTable string

// argumentWidths are the rows of the table by the name of the call.
var argumentWidths = readArguments(argumentTable)

func readArguments(text string) map[string]string {
	widths := map[string]string{}
	for line := range strings.Lines(text) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		widths[name] = strings.Trim(digits, "-")
	}
	return widths
}

// shortIDs are the calls whose 32-bit form takes users and groups of 16 bits (kernel/uid16.c).
var shortIDs = []string{"chown", "fchown", "lchown", "setfsgid", "setfsuid", "setgid", "setregid", "setresgid", "setresuid", "setreuid", "setuid"}

// width returns how many bytes of an argument the kernel looks at.
func (a abi) width(name string, index uint) (int, error) {
	digits, known := argumentWidths[name]
	switch {
	case !known && a.wide:
		return 0, fmt.Errorf("a rule compares arguments of %q, and it is not known how many bits of them the kernel takes; compare none", name)
	case index > 5:
		return 0, fmt.Errorf("a rule compares argument %d; a system call has 0 to 5", index)
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

// comparison is one condition of a rule. The kernel looks at the bits in seen only, so these
// alone are compared: whatever else is in the register changes nothing in what the call does.
type comparison struct {
	index      uint
	op         specs.LinuxSeccompOperator
	value, two uint64
	seen       uint64
}

// comparison returns what a condition means for the call name.
func (a abi) comparison(name string, arg specs.LinuxSeccompArg) (comparison, error) {
	bytes, err := a.width(name, arg.Index)
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
			return c, fmt.Errorf("a rule compares argument %d of %q with %#x, and the kernel takes %d bits of it; compare with what these can hold", arg.Index, name, v, 8*bytes)
		}
	}
	c.value, c.two = arg.Value&c.seen, arg.ValueTwo&c.seen
	return c, nil
}
