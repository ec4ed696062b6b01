// SPDX-License-Identifier: Apache-2.0

package check

import (
	"debug/elf"
	"encoding/binary"
	"io"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
)

// segmentsMax is the limit of the segments of a program that are read. Compilers write about a dozen.
const segmentsMax = 128

// readInterpreter returns the dynamic linker that a 64-bit program names, or "" if it names none. The program may be a
// user's, and sparse: package debug/elf would read as many sections as its header claims, terabytes.
func readInterpreter(program io.ReaderAt) string {
	var header elf.Header64
	order := binary.ByteOrder(binary.LittleEndian)
	read := func(at int64, to any) bool {
		return at >= 0 && binary.Read(io.NewSectionReader(program, at, int64(binary.Size(to))), order, to) == nil
	}
	if !read(0, &header.Ident) || string(header.Ident[:elf.EI_CLASS]) != elf.ELFMAG ||
		elf.Class(header.Ident[elf.EI_CLASS]) != elf.ELFCLASS64 {
		return ""
	}
	if elf.Data(header.Ident[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	var segment elf.Prog64
	if !read(0, &header) || int(header.Phentsize) != binary.Size(segment) {
		return ""
	}
	for i := range min(int64(header.Phnum), segmentsMax) {
		if !read(int64(header.Phoff)+i*int64(header.Phentsize), &segment) {
			return ""
		}
		if elf.ProgType(segment.Type) != elf.PT_INTERP || segment.Filesz >= contract.PathMax {
			continue
		}
		text := make([]byte, segment.Filesz)
		if read(int64(segment.Off), text) {
			return strings.TrimRight(string(text), "\x00")
		}
	}
	return ""
}

// readMachine returns what a program or library must have in common with another one to be loaded with it: class, byte
// order and machine of its ELF header; "" if it has none.
func readMachine(program io.ReaderAt) string {
	var header [elf.EI_NIDENT + 4]byte
	if _, err := program.ReadAt(header[:], 0); err != nil || string(header[:elf.EI_CLASS]) != elf.ELFMAG {
		return ""
	}
	return string(header[elf.EI_CLASS:elf.EI_VERSION]) + string(header[elf.EI_NIDENT+2:])
}
