// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// formatProgram returns a program with one segment, which has a text.
func formatProgram(header elf.Header64, kind elf.ProgType, text string) []byte {
	copy(header.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	header.Type, header.Version, header.Phoff, header.Phentsize, header.Phnum, header.Shentsize = 2, 1, 64, 56, 1, 64
	var program bytes.Buffer
	binary.Write(&program, binary.LittleEndian, header)
	binary.Write(&program, binary.LittleEndian, elf.Prog64{Type: uint32(kind), Off: 120, Filesz: uint64(len(text))})
	program.WriteString(text)
	return program.Bytes()
}

// plantShell makes a file the jail's shell.
func (n *checkedNode) plantShell(t *testing.T, text []byte) (path string) {
	t.Helper()
	path = filepath.Join(n.root, "bin/sh")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, text, 0o755))
	return path
}

// A user's shell that claims to have so many sections that they are larger than the memory of the node.
func TestShellWithManySections(t *testing.T) {
	n := newGoodNode(t)
	program := formatProgram(elf.Header64{Shoff: 4096}, elf.PT_LOAD, "")
	var section bytes.Buffer
	binary.Write(&section, binary.LittleEndian, elf.Section64{Size: 1 << 21})
	path := n.plantShell(t, append(append(program, make([]byte, 4096-len(program))...), section.Bytes()...))
	require.NoError(t, os.Truncate(path, 1<<40))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	assert.Empty(t, n.listFindings())
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20))
}

// Names that a user chose neither make a line nor control the terminal.
func TestFindingsAreLines(t *testing.T) {
	const hostile = "/x\nOK    kernel: \x1b]0;forged\a\u009b\u202e"
	n := newGoodNode(t)
	requireLine := func() {
		t.Helper()
		text := n.listFindings()
		assert.NotContains(t, text, "\n")
		assert.Contains(t, text, "/x; OK    kernel: ?]0;forged???")
	}
	path := n.plantShell(t, formatProgram(elf.Header64{}, elf.PT_INTERP, hostile+"\x00"))
	requireLine()
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(hostile, path))
	requireLine()
}

// Opening a file waits until the lease of its owner ends (F_SETLEASE).
func TestShellWithALease(t *testing.T) {
	n := newGoodNode(t)
	f, err := os.OpenFile(filepath.Join(n.root, "bin/sh"), os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skip("needs leases: ", err)
	}
	// Had it waited, it could be opened.
	assert.Contains(t, n.listFindings(), "has a /bin/sh that cannot be opened: resource temporarily unavailable")
}
