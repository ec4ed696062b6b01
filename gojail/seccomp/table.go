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
}

const x32Bit = 0x40000000

// machines are the ABIs of each architecture, its native one first.
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
	return numbers, known
}
