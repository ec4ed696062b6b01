// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/internal/oneline"
)

// Difference is a file that differs between two lists of a tree.
type Difference struct {
	Path string   `json:"path"`
	What string   `json:"what"`           // DifferenceAdded, DifferenceMissing or DifferenceChanged
	Keys []string `json:"keys,omitempty"` // what changed, as "mode: 0755, now 0777"
}

// Values of Difference.What.
const (
	DifferenceAdded   = "added"
	DifferenceMissing = "missing"
	DifferenceChanged = "changed"
)

// String returns the difference on one printable line: users choose names.
func (d Difference) String() string {
	line := d.What + " " + oneline.Printable(d.Path)
	if len(d.Keys) > 0 {
		line += " (" + strings.Join(d.Keys, "; ") + ")"
	}
	return line
}

// Compare calls report for each difference between the list of a tree as it was and as it is. A difference in times
// alone does not count. Both lists are sorted in the same order, so Compare reads each once, and no list is in memory.
func Compare(was, is io.Reader, report func(Difference)) error {
	a, b := newListReader(was), newListReader(is)
	left, err := a.readLine()
	if err != nil {
		return fmt.Errorf("the stored list is damaged: %w", err)
	}
	right, err := b.readLine()
	for err == nil && (left != nil || right != nil) {
		order := compareLines(left, right)
		switch {
		case order < 0:
			report(Difference{Path: left.name, What: DifferenceMissing})
		case order > 0:
			report(Difference{Path: right.name, What: DifferenceAdded})
		default:
			if keys := left.findChanges(right, a.hasXattrs); len(keys) > 0 {
				report(Difference{Path: right.name, What: DifferenceChanged, Keys: keys})
			}
		}
		if order <= 0 {
			if left, err = a.readLine(); err != nil {
				return fmt.Errorf("the stored list is damaged: %w", err)
			}
		}
		if order >= 0 {
			right, err = b.readLine()
		}
	}
	return err
}

// listLine is one file of a list.
type listLine struct {
	name  string
	words []string // KEYWORD=VALUE, in the order of the list
}

// compareLines compares two files in the order of a walk: a directory, then its content, then its next sibling. nil
// stands for the end of a list. Comparing the text would be wrong: "-" and other bytes sort before "/".
func compareLines(a, b *listLine) int {
	switch {
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return slices.Compare(strings.Split(a.name, "/"), strings.Split(b.name, "/"))
}

// findChanges returns the differences between two lines of one name; without xattrs, extended attributes do not count.
func (l *listLine) findChanges(now *listLine, xattrs bool) (keys []string) {
	was, is := l.parseValues(), now.parseValues()
	for _, word := range l.words {
		key, value, _ := strings.Cut(word, "=")
		if other, ok := is[key]; key != "time" && ok && other != value {
			keys = append(keys, describeChange(key, value, other))
		} else if !ok {
			keys = append(keys, describeKey(key)+" is gone")
		}
	}
	for _, word := range now.words {
		key, _, _ := strings.Cut(word, "=")
		if _, had := was[key]; !had && (xattrs || !isXattr(key)) {
			keys = append(keys, describeKey(key)+" is new")
		}
	}
	return keys
}

// describeKey returns a key for people: xattr.NAME as "xattr NAME".
func describeKey(key string) string {
	name, ok := strings.CutPrefix(key, xattrKey+".")
	if plain, err := unescapeName(name); ok && err == nil {
		return xattrKey + " " + oneline.Printable(plain)
	}
	return key
}

// describeChange returns a change for people: digests and values of extended attributes are too long to be shown.
func describeChange(key, was, is string) string {
	switch {
	case key == "sha256digest":
		return "content"
	case isXattr(key):
		return describeKey(key)
	}
	return fmt.Sprintf("%s: %s, now %s", key, was, is)
}

// parseValues returns the values of the keywords.
func (l *listLine) parseValues() map[string]string {
	values := map[string]string{}
	for _, word := range l.words {
		key, value, _ := strings.Cut(word, "=")
		values[key] = value
	}
	return values
}

// listReader reads a list, line by line: a list of millions of files is never in memory.
type listReader struct {
	lines     *bufio.Scanner
	hasXattrs bool
}

func newListReader(r io.Reader) *listReader {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<10) // a name of 4095 bytes and a target of as many, escaped
	return &listReader{lines: lines}
}

// readLine returns the next file, or nil at the end.
func (r *listReader) readLine() (*listLine, error) {
	for r.lines.Scan() {
		text := r.lines.Text()
		r.hasXattrs = r.hasXattrs || text == xattrsMark
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		words := strings.Split(text, " ")
		name, err := unescapeName(words[0])
		if err != nil {
			return nil, err
		}
		return &listLine{name, words[1:]}, nil
	}
	return nil, r.lines.Err()
}

// unescapeName is the reverse of escapeName.
func unescapeName(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			continue
		}
		if i+4 > len(text) {
			return "", fmt.Errorf("%q ends in the middle of an escape", text)
		}
		c, err := strconv.ParseUint(text[i+1:i+4], 8, 8)
		if err != nil {
			return "", fmt.Errorf("%q has an invalid escape", text)
		}
		b.WriteByte(byte(c))
		i += 3
	}
	return b.String(), nil
}
