// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	_ "embed"
	"maps"
	"runtime"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// table holds the numbers of the system calls, "-" for none, from golang.org/x/sys; TestTable -update
// rewrites it for a newer release of that module.
//
//go:embed syscalls.txt
var table string

// abi is a convention by which programs of this machine make system calls.
type abi struct {
	column int    // column of the table
	audit  uint32 // seccomp_data.arch
	oci    specs.Arch
	wide   bool // arguments have 64 bits
	x32    bool // numbers with x32Bit belong to another ABI (asm/unistd.h)

	private map[string]uint32 // calls with numbers from privateBase on
}

const x32Bit = 0x40000000

// privateBase is the first number of the calls that only ARM has: __ARM_NR_BASE of its asm/unistd.h.
const privateBase = 0xf0000

// armPrivate are these calls, by their names in profiles and libseccomp. Of these, a 64-bit kernel has cacheflush and
// set_tls; the C library calls set_tls at the start of each program.
var armPrivate = map[string]uint32{"breakpoint": privateBase + 1, "cacheflush": privateBase + 2,
	"usr26": privateBase + 3,
	"usr32": privateBase + 4, "set_tls": privateBase + 5, "get_tls": privateBase + 6}

// machines are the ABIs of each architecture, its native one first.
var machines = map[string][]abi{
	"amd64": {
		{column: 1, audit: unix.AUDIT_ARCH_X86_64, oci: specs.ArchX86_64, wide: true, x32: true},
		{column: 2, audit: unix.AUDIT_ARCH_I386, oci: specs.ArchX86},
	},
	"arm64": {
		{column: 3, audit: unix.AUDIT_ARCH_AARCH64, oci: specs.ArchAARCH64, wide: true},
		{column: 4, audit: unix.AUDIT_ARCH_ARM, oci: specs.ArchARM, private: armPrivate},
	},
}

func thisMachine() []abi { return machines[runtime.GOARCH] }

// listNumbers returns the system calls of one ABI by name, and the names of all system calls.
func (a abi) listNumbers() (numbers map[string]uint32, known map[string]bool) {
	numbers, known = map[string]uint32{}, map[string]bool{}
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		known[words[0]] = true
		if n, err := strconv.ParseUint(words[a.column], 10, 32); err == nil {
			numbers[words[0]] = uint32(n)
		}
	}
	maps.Copy(numbers, a.private)
	for name := range armPrivate {
		known[name] = true
	}
	return numbers, known
}
