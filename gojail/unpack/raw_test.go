// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/tarblock"
)

// raw is an entry with a header as an archive has it, which archive/tar would not write.
type raw struct {
	flag       byte // 0 is type NUL
	name, link string
	text       string
	size       string // of 12 bytes; "": that of text in octal
	mode, id   string // of 8 bytes
	time       string // of 12 bytes
	magic      string // of 8 bytes; "": that of POSIX
	device     string // of 16 bytes
	rest       string // from byte 345
}

// String returns the header and the padded content.
func (r raw) String() string {
	block := make([]byte, tarblock.Size)
	octal := func(at, width, value int) { copy(block[at:], fmt.Sprintf("%0*o\x00", width-1, value)) }
	replace := func(at int, text string) { copy(block[at:], text) }
	octal(100, 8, 0o644)
	octal(108, 8, 0)
	octal(116, 8, 0)
	octal(124, 12, len(r.text))
	octal(136, 12, int(longAgo.Unix()))
	replace(0, r.name)
	replace(100, r.mode)
	replace(108, r.id)
	replace(116, r.id)
	replace(124, r.size)
	replace(136, r.time)
	replace(157, r.link)
	if replace(257, "ustar\x0000"); r.magic != "" {
		replace(257, r.magic)
	}
	replace(329, r.device)
	replace(345, r.rest)
	tarblock.SetType(block, r.flag)
	return string(block) + r.text + nul(-len(r.text)&(tarblock.Size-1))
}

func nul(n int) string { return strings.Repeat("\x00", n) }

// ending are the blocks at the end of an archive.
var ending = nul(2 * tarblock.Size)

// base256 returns a number of a header as GNU tar writes large and negative ones.
func base256(value int64, width int) string {
	field := make([]byte, width)
	for i := range field {
		field[width-1-i] = byte(value)
		value >>= 8
	}
	field[0] |= 0x80
	return string(field)
}

// extended returns an extended header with records: key, value, key, value.
func extended(flag byte, words ...string) string {
	var b strings.Builder
	for pair := range slices.Chunk(words, 2) {
		text := " " + pair[0] + "=" + pair[1] + "\n"
		length := len(text)
		for length != len(fmt.Sprint(length))+len(text) {
			length = len(fmt.Sprint(length)) + len(text)
		}
		b.WriteString(fmt.Sprint(length) + text)
	}
	return raw{flag: flag, name: "PaxHeaders/x", text: b.String()}.String()
}

// describeTree lists a tree: name/ for a directory, name=text for a file, name>target for a symbolic link, name| for a FIFO, name%1:3 for a
// device, and a second name of a file as name&name. Mode, owner and time follow if they are unusual.
func (tree Tree) describeTree(t *testing.T) (list []string) {
	t.Helper()
	first := map[uint64]string{}
	for _, line := range tree.listNames(t) {
		name, _, _ := strings.Cut(line, "=")
		name, _, _ = strings.Cut(name, ">")
		st := tree.statFile(t, name)
		usual := uint32(0o644)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			line, usual = name+"/", 0o755
		case unix.S_IFLNK:
			usual = 0o777
		case unix.S_IFIFO:
			line = name + "|"
		case unix.S_IFCHR, unix.S_IFBLK:
			line = fmt.Sprintf("%s%%%d:%d", name, unix.Major(st.Rdev), unix.Minor(st.Rdev))
		}
		if same := first[st.Ino]; same != "" && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			list = append(list, name+"&"+same)
			continue
		}
		first[st.Ino] = name
		if mode := st.Mode & 0o7777; mode != usual {
			line += fmt.Sprintf(" mode=%o", mode)
		}
		if st.Uid != 0 || st.Gid != 0 {
			line += fmt.Sprintf(" owner=%d:%d", st.Uid, st.Gid)
		}
		if at := st.Mtim; at.Sec != longAgo.Unix() && st.Mode&unix.S_IFMT != unix.S_IFDIR || at.Nsec != 0 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			line += fmt.Sprintf(" time=%d.%09d", at.Sec, at.Nsec)
		}
		for _, xattr := range listXattrs(t, filepath.Join(tree.Dir, name)) {
			value := make([]byte, 100)
			n, err := unix.Lgetxattr(filepath.Join(tree.Dir, name), xattr, value)
			require.NoError(t, err)
			line += fmt.Sprintf(" %s=%q", xattr, value[:n])
		}
		list = append(list, line)
	}
	return list
}

// tarOf has GNU tar write an archive of a new directory that a script fills, and returns the last one if there are several.
func tarOf(t testing.TB, script string) string {
	t.Helper()
	dir := t.TempDir()
	out, err := runShell(dir, "mkdir in && cd in && export LC_ALL=C && "+script)
	require.NoError(t, err, out)
	text, err := os.ReadFile(filepath.Join(dir, "in", "archive"))
	require.NoError(t, err)
	return string(text)
}
