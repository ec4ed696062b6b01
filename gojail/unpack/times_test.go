// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestReplacedDirectories covers archives that were appended to (tar -r): a directory is replaced after its times and those
// of what is in it were recorded.
func TestReplacedDirectories(t *testing.T) {
	other := time.Unix(500_000_000, 0)
	before := []entry{directory("t"), directory("t/b"), directory("a"), directory("a/b").withHeader(func(h *tar.Header) { h.ModTime = other })}
	for name, test := range map[string]struct {
		entries []entry
		want    []string
		times   map[string]time.Time
	}{
		"by a file": {[]entry{file("a", "1")}, []string{"a=1", "t", "t/b"}, map[string]time.Time{"t/b": longAgo}},
		"by a symlink to a directory with the same names": {
			[]entry{symlink("a", "t")}, []string{"a>t", "t", "t/b"}, map[string]time.Time{"t/b": longAgo},
		},
		"by a hard link": {[]entry{file("f", "1"), link("a", "f")}, []string{"a=1", "f=1", "t", "t/b"}, map[string]time.Time{"t/b": longAgo}},
		"by a file, and that by a directory": {
			[]entry{file("a", "1"), directory("a"), file("a/c", "")}, []string{"a", "a/c=", "t", "t/b"}, map[string]time.Time{"a": longAgo},
		},
		"by a file, and that by a directory with the same names": {
			[]entry{file("a", "1"), directory("a"), file("a/b/c", "")}, []string{"a", "a/b", "a/b/c=", "t", "t/b"}, map[string]time.Time{"a": longAgo, "a/b": {}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t)
			tree.unpackLayers(t, append(before[:len(before):len(before)], test.entries...))
			assert.Equal(t, test.want, tree.listNames(t))
			for at, want := range test.times {
				st := tree.statFile(t, at)
				got := time.Unix(st.Mtim.Unix())
				if want.IsZero() {
					assert.WithinDuration(t, time.Now(), got, time.Hour, "%s is new, and no entry says its time", at)
				} else {
					assert.Equal(t, want, got, at)
				}
			}
		})
	}
}
