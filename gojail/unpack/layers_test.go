// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

func TestWhiteoutsOverSeveralLayers(t *testing.T) {
	for name, test := range map[string]struct {
		layers [][]entry
		want   []string
	}{
		"removed, and back with other content": {
			[][]entry{{directory("d"), file("d/a", "1"), file("d/b", "1")}, {file(".wh.d", "")}, {directory("d"), file("d/c", "3")}},
			[]string{"d", "d/c=3"},
		},
		"removed twice": {
			[][]entry{{file("a", "1"), file("b", "1")}, {file(".wh.a", "")}, {file(".wh.a", "")}},
			[]string{"b=1"},
		},
		"each layer removes what the one below brought": {
			[][]entry{{directory("d"), file("d/a", "1")}, {file("d/.wh.a", ""), file("d/b", "2")}, {file("d/.wh.b", ""), file("d/c", "3")}},
			[]string{"d", "d/c=3"},
		},
		"opaque over two layers": {
			[][]entry{{directory("d"), file("d/a", "1")}, {file("d/b", "2"), directory("d/s"), file("d/s/x", "2")}, {file("d/.wh..wh..opq", ""), file("d/s/y", "3")}},
			[]string{"d", "d/s", "d/s/y=3"},
		},
		"opaque, and more above it": {
			[][]entry{{directory("d"), file("d/a", "1")}, {directory("d"), file("d/.wh..wh..opq", ""), file("d/b", "2")}, {file("d/a", "3"), file("d/.wh.b", "")}},
			[]string{"d", "d/a=3"},
		},
		"opaque at two depths": {
			[][]entry{
				{directory("d"), directory("d/s"), file("d/s/a", "1"), file("d/b", "1")},
				{file("d/s/new", "2"), file("d/s/.wh..wh..opq", ""), file("d/.wh..wh..opq", "")},
			},
			[]string{"d", "d/s", "d/s/new=2"},
		},
		"opaque where nothing was": {
			[][]entry{{file("a", "1")}, {directory("d"), file("d/.wh..wh..opq", ""), file("d/b", "2")}},
			[]string{"a=1", "d", "d/b=2"},
		},
		"hidden names": {
			[][]entry{{file(".a", "1"), directory(".d"), file(".d/.x", "1"), file(".d/.y", "1"), directory("d"), directory("d/.d"), file("d/.d/x", "1")},
				{file(".wh..a", ""), file(".d/.wh..x", ""), file("d/.wh..d", "")}},
			[]string{".d", ".d/.y=1", "d"},
		},
		"a symbolic link is removed, not what it leads to": {
			[][]entry{{directory("d"), file("d/a", "1"), symlink("l", "d")}, {file(".wh.l", "")}},
			[]string{"d", "d/a=1"},
		},
		"through a symbolic link of another layer": {
			[][]entry{{directory("d"), file("d/a", "1"), file("d/b", "1")}, {symlink("l", "/d")}, {file("l/.wh.a", "")}},
			[]string{"d", "d/b=1", "l>/d"},
		},
		"directory, link, directory": {
			[][]entry{{directory("d"), file("d/a", "1"), directory("o")}, {symlink("d", "o")}, {file("d/b", "3")}, {directory("d"), file("d/c", "4")}},
			[]string{"d", "d/c=4", "o", "o/b=3"},
		},
		"file, directory, file": {
			[][]entry{{file("x", "1")}, {directory("x"), file("x/a", "2")}, {file("x", "3")}},
			[]string{"x=3"},
		},
		"the whiteout of a directory is a directory": {
			[][]entry{{directory("d"), file("d/a", "1"), file("b", "1")}, {directory(".wh.d")}},
			[]string{"b=1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t)
			tree.unpackLayers(t, test.layers...)
			assert.Equal(t, test.want, tree.listNames(t))
		})
	}
}

// TestWhiteoutKeepsItsDirectory covers what a whiteout must not change: owner, mode and times, to the nanosecond.
func TestWhiteoutKeepsItsDirectory(t *testing.T) {
	tree := newTree(t)
	access, modify := time.Unix(789, 111), time.Unix(123, 456)
	tree.unpackLayers(t, []entry{directory("d").withHeader(func(h *tar.Header) {
		h.Mode, h.Uid, h.Gid, h.AccessTime, h.ModTime = 0o1751, 5, 6, access, modify
	}), file("d/a", "1"), file("d/b", "1")}, []entry{file("d/.wh.a", "")}, []entry{file("d/.wh..wh..opq", "")})
	st := tree.statFile(t, "d")
	assert.Equal(t, []any{uint32(0o41751), uint32(5), uint32(6)}, []any{st.Mode, st.Uid, st.Gid})
	assert.Equal(t, []time.Time{access, modify}, []time.Time{time.Unix(st.Atim.Unix()), time.Unix(st.Mtim.Unix())})
	assert.Equal(t, []string{"d"}, tree.listNames(t))
}

// TestUpperDirectoryReplacesAttributes: the entry of an upper layer says all of a directory, but not what is in it.
func TestUpperDirectoryReplacesAttributes(t *testing.T) {
	tree := newTree(t)
	attribute := func(name string) func(h *tar.Header) {
		return func(h *tar.Header) { h.PAXRecords = map[string]string{paxXattr + "user." + name: name} }
	}
	tree.unpackLayers(t, []entry{
		directory(".").withHeader(attribute("root")),
		directory("d").withHeader(attribute("lower")), file("d/a", "1"), directory("e").withHeader(attribute("lower")),
	}, []entry{
		directory("."), directory("d").withHeader(attribute("upper")).withHeader(func(h *tar.Header) { h.Mode, h.Uid = 0o700, 7 }), file("e/new", "2"),
	})
	st := tree.statFile(t, "d")
	assert.Equal(t, []uint32{0o40700, 7}, []uint32{st.Mode, st.Uid})
	assert.Equal(t, []string{"user.upper"}, listXattrs(t, filepath.Join(tree.Dir, "d")))
	assert.Equal(t, []string{"user.lower"}, listXattrs(t, filepath.Join(tree.Dir, "e")), "no entry of the upper layer")
	assert.Empty(t, listXattrs(t, tree.Dir))
	assert.Equal(t, []string{"d", "d/a=1", "e", "e/new=2"}, tree.listNames(t))
}

func TestHardLinksAcrossLayers(t *testing.T) {
	lower := []entry{
		file("a", "1").withHeader(func(h *tar.Header) { h.Uid = 5 }), symlink("s", "a"), directory("usr"), directory("usr/lib"), file("usr/lib/x", "1"),
		symlink("lib", "usr/lib"), link("b", "a"),
	}
	for name, test := range map[string]struct {
		layers [][]entry
		want   map[string]string // a file, and another with the same inode, or =text
	}{
		"to a file of a lower layer":           {[][]entry{{link("l", "a")}}, map[string]string{"l": "a", "b": "a"}},
		"to an absolute name":                  {[][]entry{{link("l", "/a")}}, map[string]string{"l": "a"}},
		"to a name out of the tree":            {[][]entry{{link("l", "../../../a")}}, map[string]string{"l": "a"}},
		"to a symbolic link":                   {[][]entry{{link("l", "../s")}}, map[string]string{"l": "s"}},
		"through a symbolic link":              {[][]entry{{link("l", "lib/x"), link("lib/y", "a")}}, map[string]string{"l": "usr/lib/x", "usr/lib/y": "a"}},
		"one name is replaced":                 {[][]entry{{file("a", "2")}}, map[string]string{"a": "=2", "b": "=1"}},
		"one name is replaced, and a link new": {[][]entry{{file("a", "2")}, {link("l", "b"), link("m", "a")}}, map[string]string{"l": "b", "m": "a", "a": "=2", "b": "=1"}},
		"one name is removed":                  {[][]entry{{file(".wh.a", "")}, {link("l", "b")}}, map[string]string{"l": "b", "b": "=1"}},
		"in an opaque directory":               {[][]entry{{file("usr/lib/n", "2"), link("usr/lib/m", "usr/lib/n"), file("usr/lib/.wh..wh..opq", "")}}, map[string]string{"usr/lib/m": "usr/lib/n", "usr/lib/n": "=2"}},
		"over a directory":                     {[][]entry{{link("usr", "a")}}, map[string]string{"usr": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t)
			for _, layer := range test.layers {
				for i := range layer {
					if layer[i].Typeflag == tar.TypeLink {
						layer[i].Uid, layer[i].Mode = 1000, 0o777 // not applied: the inode has an entry of its own
					}
				}
			}
			tree.unpackLayers(t, append([][]entry{lower}, test.layers...)...)
			names := tree.listNames(t)
			for at, want := range test.want {
				if text, ok := strings.CutPrefix(want, "="); ok {
					assert.Contains(t, names, at+"="+text)
				} else {
					assert.Equal(t, tree.statFile(t, want).Ino, tree.statFile(t, at).Ino, "%s and %s", want, at)
				}
			}
			for _, at := range []string{"a", "b"} {
				var st unix.Stat_t
				if err := unix.Lstat(filepath.Join(tree.Dir, at), &st); err == nil && st.Nlink > 1 {
					assert.Contains(t, []uint32{0, 5}, st.Uid)
					assert.EqualValues(t, 0o100644, st.Mode)
				}
			}
		})
	}
	for name, layers := range map[string][][]entry{
		"removed below":      {{file(".wh.a", "")}, {link("l", "a")}},
		"removed before":     {{file(".wh.a", ""), link("l", "a")}},
		"removed with a dir": {{file(".wh.usr", "")}, {link("l", "usr/lib/x")}},
	} {
		t.Run("to what is "+name, func(t *testing.T) {
			tree := newTree(t)
			tree.unpackLayers(t, append([][]entry{lower}, layers[:len(layers)-1]...)...)
			_, err := tree.UnpackLayer(context.Background(), packArchive(t, layers[len(layers)-1]...), layerPolicy, DefaultLimits, Result{})
			require.ErrorContains(t, err, ": no such file or directory")
		})
	}
}

// TestPaxHeaders covers what a header has no space for.
func TestPaxHeaders(t *testing.T) {
	tree := newTree(t)
	component := strings.Repeat("n", nameMax)
	long := strings.Repeat(component+"/", 8)
	tree.unpackLayers(t, []entry{
		{tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "a commit", "path": "nowhere"}}, ""},
		file(long+"f", "1").withHeader(func(h *tar.Header) { h.ModTime, h.AccessTime = time.Unix(-5, 250), time.Unix(1<<33, 7) }),
		symlink("s", "/"+long+"f"), link("l", long+"f"),
		file("ü \xff\n", "2").withHeader(func(h *tar.Header) { h.Uid, h.Gid = 1<<32-2, 1<<31 }),
		file("x", "3").withHeader(func(h *tar.Header) {
			h.PAXRecords = map[string]string{paxXattr + "user.binary": "\x01=\n", "VENDOR.key": "ignored", "LIBARCHIVE.creationtime": "1.5"}
			h.Uname, h.Gname = "root", "nobody" // the numbers count
		}),
	})
	assert.Equal(t, []string{"user.binary"}, listXattrs(t, filepath.Join(tree.Dir, "x")))
	deep := tree.statFile(t, "l")
	assert.EqualValues(t, 2, deep.Nlink)
	assert.Equal(t, []time.Time{time.Unix(1<<33, 7), time.Unix(-5, 250)}, []time.Time{time.Unix(deep.Atim.Unix()), time.Unix(deep.Mtim.Unix())})
	odd := tree.statFile(t, "ü \xff\n")
	assert.Equal(t, []uint32{1<<32 - 2, 1 << 31}, []uint32{odd.Uid, odd.Gid})
	assert.EqualValues(t, 0, tree.statFile(t, "x").Gid)
	names := fmt.Sprint(tree.listNames(t))
	assert.Contains(t, names, "s>/"+long+"f")
	assert.NotContains(t, names, "nowhere")
}

// TestArchivesOfTar has GNU tar write and extract the same tree in each of its formats.
func TestArchivesOfTar(t *testing.T) {
	reference, dir := newTree(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	long := strings.Repeat("directory-with-a-name/", 12)
	for _, name := range []string{"d", long, "empty"} {
		require.NoError(t, os.MkdirAll(at(name), 0o750))
	}
	sparse, err := os.Create(at("sparse"))
	require.NoError(t, err)
	for _, place := range []int64{0, 5 << 20, 20 << 20} { // with a hole at the end
		_, err := sparse.WriteAt([]byte("data"), place)
		require.NoError(t, err)
	}
	require.NoError(t, sparse.Truncate(32<<20))
	require.NoError(t, sparse.Close())
	nstest.WriteFile(t, at("d/file"), strings.Repeat("text", 5000))
	require.NoError(t, os.Link(at("d/file"), at("d/link")))
	require.NoError(t, os.Symlink("file", at("d/symlink")))
	require.NoError(t, unix.Mkfifo(at("d/fifo"), 0o640))
	require.NoError(t, os.Chown(at("d/file"), 70_000, 2_000_000))
	for _, test := range []struct {
		format string
		args   []string
		long   bool
	}{
		{"gnu", []string{"--sparse"}, true},
		{"gnu", nil, true},
		{"oldgnu", []string{"--sparse"}, true},
		{"posix", []string{"--sparse", "--sparse-version=0.0"}, true},
		{"posix", []string{"--sparse", "--sparse-version=0.1"}, true},
		{"posix", []string{"--sparse", "--sparse-version=1.0"}, true},
		{"posix", []string{"--pax-option=globexthdr.name=g,comment=x"}, true},
		{"ustar", []string{"--blocking-factor=100"}, false},
	} {
		t.Run(test.format+fmt.Sprint(test.args), func(t *testing.T) {
			tree := newTree(t)
			names := []string{"d", "sparse", "empty"}
			if test.long {
				file, name := long+strings.Repeat("f", 120), long+strings.Repeat("l", 120)
				nstest.WriteFile(t, at(file), "long")
				os.Remove(at(name))
				require.NoError(t, os.Symlink("/"+file, at(name)))
				names = append(names, "directory-with-a-name")
			}
			archive := filepath.Join(t.TempDir(), "tar")
			out, err := exec.Command("tar", slices.Concat([]string{"-C", dir, "-cf", archive, "--format=" + test.format}, test.args, names)...).CombinedOutput()
			require.NoError(t, err, string(out))
			require.NoError(t, os.RemoveAll(reference.Dir))
			require.NoError(t, os.Mkdir(reference.Dir, 0o755))
			out, err = exec.Command("tar", "-C", reference.Dir, "-xpf", archive, "--numeric-owner").CombinedOutput()
			require.NoError(t, err, string(out))
			file, err := os.OpenFile(archive, os.O_RDWR|os.O_APPEND, 0)
			require.NoError(t, err)
			defer file.Close()
			_, err = file.WriteString(strings.Repeat("after the end", 100_000)) // GNU tar and others ignore it, and so do we
			require.NoError(t, err)
			_, err = file.Seek(0, io.SeekStart)
			require.NoError(t, err)
			_, err = tree.UnpackLayer(context.Background(), file, layerPolicy, DefaultLimits, Result{})
			require.NoError(t, err)
			rest, err := io.ReadAll(file)
			require.NoError(t, err)
			assert.Empty(t, rest, "the digest covers all of it")
			assert.Equal(t, reference.listFiles(t).String(), tree.listFiles(t).String())
			assert.Equal(t, tree.statFile(t, "d/file").Ino, tree.statFile(t, "d/link").Ino)
			st := tree.statFile(t, "sparse")
			assert.EqualValues(t, 32<<20, st.Size)
			assert.Less(t, st.Blocks*512, int64(1<<20), "holes")
		})
	}
}

// TestWhiteoutsListADirectoryOnce: with n files and n whiteouts, n times n names would be read.
func TestWhiteoutsListADirectoryOnce(t *testing.T) {
	dir := t.TempDir()
	u := newUnpacker(layerPolicy, DefaultLimits, Result{})
	sub := filepath.Join(dir, "sub")
	require.NoError(t, os.Mkdir(sub, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(sub, "lower"), nil, 0o644))
	u.addUpper(sub)
	require.NoError(t, u.applyWhiteout(dir, opaqueName))
	assert.NoFileExists(t, filepath.Join(sub, "lower"))
	require.NoError(t, os.WriteFile(filepath.Join(sub, "new"), nil, 0o644)) // it would be removed if it were found
	for _, again := range [][2]string{{dir, opaqueName}, {dir, whiteoutPrefix + "sub"}, {sub, opaqueName}} {
		require.NoError(t, u.applyWhiteout(again[0], again[1]))
		assert.FileExists(t, filepath.Join(sub, "new"), "%v", again)
	}
}
