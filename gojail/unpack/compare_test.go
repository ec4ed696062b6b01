// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
		file("new\nline #=\\ü", "").withHeader(func(h *tar.Header) { h.PAXRecords = map[string]string{"SCHILY.xattr.user.a b": "v\n"} }),
	})
	assert.Equal(t, `#mtree
# xattrs
. type=dir uid=0 gid=0 mode=0755
./a type=dir uid=0 gid=0 mode=0755
./a/l type=link uid=0 gid=0 link=to\040here
./a/x type=file uid=5 gid=6 mode=0644 size=4 time=1000000000.000000000 sha256digest=982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1
./a-b type=dir uid=0 gid=0 mode=0755
./new\012line\040\043\075\134\303\274 type=file uid=0 gid=0 mode=0644 size=0 time=1000000000.000000000 sha256digest=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 xattr.user.a\040b=dgo=
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

// TestCompareFindsExtendedAttributes covers those that a build keeps, lists of access, and more of them than a line has space for.
func TestCompareFindsExtendedAttributes(t *testing.T) {
	tree := newTree(t)
	tree.unpackLayers(t, []entry{directory("."), directory("d"), file("a", "x"), file("b", "x"), file("c", "x"), file("e", "x"), symlink("l", "a")})
	set := func(name, key, value string) {
		require.NoError(t, unix.Setxattr(filepath.Join(tree.Dir, name), key, []byte(value), 0))
	}
	set("a", "user.kept", "1")
	set("b", "user.gone", "")
	set("c", capabilityKey, capability)
	for i := range 3 {
		set("e", fmt.Sprintf("user.large%d", i), strings.Repeat("v", 900))
	}
	was := tree.listFiles(t).String()
	assert.Empty(t, listDifferences(t, was, was))

	set("a", "user.kept", "2")
	set("a", "user.new\n", "")
	require.NoError(t, unix.Removexattr(filepath.Join(tree.Dir, "b"), "user.gone"))
	require.NoError(t, unix.Removexattr(filepath.Join(tree.Dir, "c"), capabilityKey))
	set("d", "user.dir", "1")
	set("e", "user.large2", strings.Repeat("v", 899)+"V")
	set("e", "trusted.storage", "its own")
	assert.Equal(t, []string{
		"changed ./a (xattr user.kept; xattr user.new? is new)",
		"changed ./b (xattr user.gone is gone)",
		"changed ./c (xattr security.capability is gone)",
		"changed ./d (xattr user.dir is new)",
		"changed ./e (xattr user.large2)",
	}, listDifferences(t, was, tree.listFiles(t).String()))

	for _, value := range []string{"v", "V"} {
		set("e", "user.large3", strings.Repeat(value, 800))
		was, before := tree.listFiles(t).String(), was
		assert.Contains(t, strings.Join(listDifferences(t, before, was), "\n"), "changed ./e (xattr")
		assert.Less(t, len(was), 16<<10)
	}
	require.NoError(t, unix.Removexattr(filepath.Join(tree.Dir, "a"), "user.kept"))
	earlier := strings.ReplaceAll(regexp.MustCompile(` xattr\S+`).ReplaceAllString(was, ""), "# xattrs\n", "")
	assert.Empty(t, listDifferences(t, earlier, tree.listFiles(t).String()), "a list without extended attributes has no word about them")
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

// TestListDoesNotFollowLinks: users may exchange files of a version while it is verified.
func TestListDoesNotFollowLinks(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink("/", filepath.Join(dir, "link")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	for _, name := range []string{"link", "fifo"} {
		_, err := readNames(filepath.Join(dir, name))
		require.ErrorContains(t, err, "not a directory")
	}
}
