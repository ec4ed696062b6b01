// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	_ "embed"
	"runtime"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// table has the numbers of the system calls, "-" for none, as golang.org/x/sys knows
// them; TestTable -update writes it again when that module is newer.
//
//go:embed syscalls.txt
var table string

// abi is one convention by which this machine's programs call the kernel.
type abi struct {
	column int    // of the table
	audit  uint32 // seccomp_data.arch
	oci    specs.Arch
	wide   bool // arguments have 64 bits
	x32    bool // numbers with this bit are of another ABI, asm/unistd.h
}

const x32Bit = 0x40000000

// Each machine's own convention comes first.
var machines = map[string][]abi{
	"amd64": {
		{column: 1, audit: unix.AUDIT_ARCH_X86_64, oci: specs.ArchX86_64, wide: true, x32: true},
		{column: 2, audit: unix.AUDIT_ARCH_I386, oci: specs.ArchX86},
	},
	"arm64": {
		{column: 3, audit: unix.AUDIT_ARCH_AARCH64, oci: specs.ArchAARCH64, wide: true},
	},
}

func thisMachine() []abi { return machines[runtime.GOARCH] }

// numbers are the calls of one ABI, by name; known are the names of all of them.
func (a abi) numbers() (numbers map[string]uint32, known map[string]bool) {
	numbers, known = map[string]uint32{}, map[string]bool{}
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		known[words[0]] = true
		if n, err := strconv.ParseUint(words[a.column], 10, 32); err == nil {
			numbers[words[0]] = uint32(n)
		}
	}
	return numbers, known
}
