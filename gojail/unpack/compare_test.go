// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func (tree Tree) listFiles(t *testing.T) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, tree.List(context.Background(), &b))
	return &b
}

func listDifferences(t *testing.T, was, is string) (list []string) {
	t.Helper()
	require.NoError(t, Compare(strings.NewReader(was), strings.NewReader(is), func(d Difference) { list = append(list, d.String()) }))
	return list
}

func TestListIsInTheFormatOfMtree(t *testing.T) {
	tree := newTree(t)
	tree.unpackLayers(t, []entry{
		directory("."), directory("a-b"), directory("a"), file("a/x", "text").withHeader(func(h *tar.Header) { h.Uid, h.Gid = 5, 6 }), symlink("a/l", "to here"),
		file("new\nline #=\\ü", ""),
	})
	assert.Equal(t, `#mtree
. type=dir uid=0 gid=0 mode=0755
./a type=dir uid=0 gid=0 mode=0755
./a/l type=link uid=0 gid=0 link=to\040here
./a/x type=file uid=5 gid=6 mode=0644 size=4 time=1000000000.000000000 sha256digest=982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1
./a-b type=dir uid=0 gid=0 mode=0755
./new\012line\040\043\075\134\303\274 type=file uid=0 gid=0 mode=0644 size=0 time=1000000000.000000000 sha256digest=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
`, tree.listFiles(t).String())
}

func TestCompareFindsEachChange(t *testing.T) {
	tree := newTree(t)
	tree.unpackLayers(t, []entry{directory("."), directory("a"), file("a/x", "text"), file("a/y", "text"), directory("a-b"), file("z", "text"), symlink("l", "z")})
	was := tree.listFiles(t).String()
	assert.Empty(t, listDifferences(t, was, was))

	at := func(name string) string { return filepath.Join(tree.Dir, name) }
	require.NoError(t, os.Remove(at("a/x")))
	require.NoError(t, os.WriteFile(at("a/y"), []byte("TEXT"), 0o644))
	require.NoError(t, os.WriteFile(at("a/added\n"), nil, 0o644))
	require.NoError(t, unix.Chmod(at("z"), 0o4755))
	require.NoError(t, os.Chown(at("a-b"), 7, 0))
	require.NoError(t, os.Remove(at("l")))
	require.NoError(t, unix.Mkfifo(at("l"), 0o600))
	assert.Equal(t, []string{
		"added ./a/added?",
		"missing ./a/x",
		"changed ./a/y (content)",
		"changed ./a-b (uid: 0, now 7)",
		"changed ./l (type: link, now fifo; link is gone; mode is new)",
		"changed ./z (mode: 0644, now 4755)",
	}, listDifferences(t, was, tree.listFiles(t).String()))

	require.NoError(t, unix.Utimes(at("z"), make([]unix.Timeval, 2)))
	require.NoError(t, os.Chmod(at("z"), 0o644))
	assert.NotContains(t, strings.Join(listDifferences(t, was, tree.listFiles(t).String()), "\n"), "./z", "a time alone is no difference")
}

func TestCompareWithADamagedList(t *testing.T) {
	good := "./a type=file\n"
	for _, bad := range []string{`./a\0`, `./a\999 type=file`, strings.Repeat("x", 70<<10)} {
		err := Compare(strings.NewReader(bad), strings.NewReader(good), func(Difference) {})
		require.ErrorContains(t, err, "the stored list is damaged")
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a b\\\n\x80")
	f.Fuzz(func(t *testing.T, name string) {
		escaped := escapeName(name)
		assert.NotContains(t, escaped, " ")
		back, err := unescapeName(escaped)
		assert.NoError(t, err)
		assert.Equal(t, name, back)
		unescapeName(name) // whatever it is
	})
}

func FuzzCompare(f *testing.F) {
	f.Add("#mtree\n. type=dir\n./a type=file size=4\n", "./b a=\n")
	f.Fuzz(func(_ *testing.T, was, is string) {
		Compare(strings.NewReader(was), strings.NewReader(is), func(d Difference) { _ = d.String() })
	})
}
