// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mount is a row of /proc/self/mounts, fstab(5), with the kernel's escapes such as "\040" for a blank.
type mount struct{ source, point, kind, options string }

// mountList is the mount table: the last mount on a path is the visible one.
type mountList []mount

// readMounts reads the mount table.
func (s *System) readMounts() (mountList, error) {
	text, err := os.ReadFile(filepath.Join(s.Proc, "self/mounts"))
	if err != nil {
		return nil, errors.New("cannot read the mount table")
	}
	table := parseMounts(string(text))
	if len(table) == 0 {
		return nil, errors.New("cannot parse the mount table")
	}
	return table, nil
}

// parseMounts parses a mount table. One blank separates two fields, of which the source may be empty.
func parseMounts(text string) (table mountList) {
	for row := range strings.Lines(text) {
		if f := strings.Split(strings.TrimSuffix(row, "\n"), " "); len(f) >= 4 && f[1] != "" {
			table = append(table, mount{f[0], f[1], f[2], f[3]})
		}
	}
	return table
}

// find returns the mount on a path as nhc.conf may write it, see forms.
func (t mountList) find(path string) (mount, bool) {
	for _, path := range slices.Compact([]string{path, filepath.Clean(path)}) {
		for form := range formCount {
			for _, m := range slices.Backward(t) {
				if forms(m.point)[form] == path {
					return m, true
				}
			}
		}
	}
	return mount{}, false
}

// findAutomount returns the automount with an indirect map, autofs(5), below which a path is mounted when it is used.
func (t mountList) findAutomount(path string) (point string, ok bool) {
	for dir := filepath.Dir(filepath.Clean(path)); ; dir = filepath.Dir(dir) {
		if m, mounted := t.find(dir); mounted {
			return dir, m.kind == autofs && !m.isDirect()
		}
		if dir == "/" || dir == "." {
			return "", false
		}
	}
}

// autofs is the type of an automount.
const autofs = "autofs"

// isDirect reports whether an automount is itself covered by what it mounts, as systemd.automount(5) and direct maps
// are.
func (m mount) isDirect() bool {
	options := strings.Split(m.options, ",")
	return slices.Contains(options, "direct") || slices.Contains(options, "offset")
}

const formCount = 3

// forms returns the forms in which nhc.conf may write a field of the table: as it is, with the kernel's escapes, and
// with these escapes without their backslashes. NHC compares the last one, since bash's read removes backslashes from
// the table as from nhc.conf, and nhc-genconf writes it.
func forms(field string) [formCount]string {
	return [formCount]string{decodeOctal(field), field, strings.ReplaceAll(field, `\`, "")}
}

// matchesField reports whether a match string matches a field in one of its forms.
func (m *match) matchesField(field string) bool {
	all := forms(field)
	return slices.ContainsFunc(all[:], m.matchesText) != m.not
}

// decodeOctal undoes the kernel's escapes such as "\040" for a space.
func decodeOctal(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
