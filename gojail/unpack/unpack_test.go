// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/nstest"
)

// childVariable makes this test binary a child of the package.
const childVariable = "GOJAIL_TEST_UNPACK"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		Child(os.Args[len(os.Args)-1])
	}
	os.Exit(m.Run())
}

// newTree returns an empty tree beside a file that nothing may touch.
func newTree(t *testing.T) Tree {
	t.Helper()
	nstest.NeedRoot(t)
	nstest.NoLeaks(t)
	t.Setenv(childVariable, "1")
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tree"), 0o755))
	nstest.WriteFile(t, filepath.Join(dir, "outside"), "untouched")
	t.Cleanup(func() {
		text, err := os.ReadFile(filepath.Join(dir, "outside"))
		require.NoError(t, err)
		require.Equal(t, "untouched", string(text))
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 2, "nothing new beside the tree")
	})
	return Tree{Dir: filepath.Join(dir, "tree"), Self: []string{"/proc/self/exe"}}
}

// entry is one member of an archive: a header with its content.
type entry struct {
	tar.Header
	text string
}

func file(name, text string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, ModTime: longAgo}, text}
}

func directory(name string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755, ModTime: longAgo}, ""}
}

func symlink(name, to string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to, ModTime: longAgo}, ""}
}

func link(name, to string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: to, ModTime: longAgo}, ""}
}

// withHeader returns an entry with another mode, owner or extended attribute.
func (e entry) withHeader(change func(h *tar.Header)) entry {
	change(&e.Header)
	return e
}

var longAgo = time.Unix(1_000_000_000, 0)

// packArchive returns an archive.
func packArchive(t testing.TB, entries ...entry) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := e.Header
		h.Size, h.Format = int64(len(e.text)), tar.FormatPAX
		require.NoError(t, w.WriteHeader(&h))
		_, err := w.Write([]byte(e.text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return &b
}

var layerPolicy = Policy{Devices: DevicesDrop, Whiteouts: true}

// unpackLayers unpacks layers in order.
func (tree Tree) unpackLayers(t *testing.T, layers ...[]entry) (total Result) {
	t.Helper()
	for _, layer := range layers {
		result, err := tree.UnpackLayer(context.Background(), packArchive(t, layer...), layerPolicy, DefaultLimits, total)
		require.NoError(t, err)
		total.Add(result)
	}
	return total
}

// requireRefused unpacks a layer that must be refused, and returns the error.
func (tree Tree) requireRefused(t *testing.T, policy Policy, limits Limits, entries ...entry) string {
	t.Helper()
	_, err := tree.UnpackLayer(context.Background(), packArchive(t, entries...), policy, limits, Result{})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "\n", "one line")
	return err.Error()
}

// listNames lists the tree: name for a directory, name=text for a file, name>target for a symbolic link.
func (tree Tree) listNames(t *testing.T) (list []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(tree.Dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		name, _ := filepath.Rel(tree.Dir, path)
		switch {
		case name == ".":
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			require.NoError(t, err)
			name += ">" + target
		case d.Type().IsRegular():
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			name += "=" + string(text)
		}
		list = append(list, name)
		return nil
	}))
	return list
}

func (tree Tree) statFile(t *testing.T, name string) (st unix.Stat_t) {
	t.Helper()
	require.NoError(t, unix.Lstat(filepath.Join(tree.Dir, name), &st))
	return st
}

func TestUnpackKeepsWhatAnArchiveSays(t *testing.T) {
	tree := newTree(t)
	result := tree.unpackLayers(t, []entry{
		directory("./").withHeader(func(h *tar.Header) { h.Mode = 0o755 }),
		directory("dir/").withHeader(func(h *tar.Header) { h.Mode, h.Uid, h.Gid = 0o2775, 5001, 5002 }),
		file("dir/file", "text").withHeader(func(h *tar.Header) { h.Mode, h.Uid, h.Gid = 0o640, 4_294_967_294, 7 }),
		link("dir/same", "./dir/file"),
		symlink("dir/absolute", "/etc/passwd").withHeader(func(h *tar.Header) { h.Uid = 9 }),
		file("implied/deep/file", "x"),
		{tar.Header{Name: "pipe", Typeflag: tar.TypeFifo, Mode: 0o620, ModTime: longAgo}, ""},
		file("a\nname", "y"),
		file(strings.Repeat("d/", 100)+strings.Repeat("n", 255), "long"),
		{tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "git"}}, ""},
	})
	assert.Equal(t, Result{Entries: 10 + 102, Bytes: 10}, result, "implied directories count")
	st := tree.statFile(t, "dir/file")
	assert.Equal(t, [3]uint32{0o100640, 4_294_967_294, 7}, [3]uint32{st.Mode, st.Uid, st.Gid})
	assert.Equal(t, st.Ino, tree.statFile(t, "dir/same").Ino)
	assert.Equal(t, longAgo.Unix(), st.Mtim.Sec)
	st = tree.statFile(t, "dir")
	assert.Equal(t, [3]uint32{0o042775, 5001, 5002}, [3]uint32{st.Mode, st.Uid, st.Gid})
	assert.Equal(t, longAgo.Unix(), st.Mtim.Sec, "after files were put into it")
	assert.EqualValues(t, 9, tree.statFile(t, "dir/absolute").Uid)
	assert.EqualValues(t, 0o040755, tree.statFile(t, "implied/deep").Mode)
	assert.EqualValues(t, unix.S_IFIFO|0o620, tree.statFile(t, "pipe").Mode)
	tree.statFile(t, "a\nname")
	assert.Contains(t, tree.listNames(t), "dir/absolute>/etc/passwd")
}

func TestUnpackStaysInside(t *testing.T) {
	outside := []string{"../outside", "../../../../../../../outside", "/outside"}
	for _, name := range outside {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t)
			tree.unpackLayers(t, []entry{file(name, "inside")})
			assert.Equal(t, []string{"outside=inside"}, tree.listNames(t))
		})
		t.Run("through a symlink to "+name, func(t *testing.T) {
			tree := newTree(t)
			tree.unpackLayers(t, []entry{symlink("s", filepath.Dir(name)), file("s/outside", "inside")}, []entry{file("s/outside", "again")})
			assert.Equal(t, []string{"outside=again"}, tree.listNames(t)[:1])
		})
		t.Run("over a symlink to "+name, func(t *testing.T) {
			tree := newTree(t)
			tree.unpackLayers(t, []entry{symlink("s", name)}, []entry{file("s", "inside")})
			assert.Equal(t, []string{"s=inside"}, tree.listNames(t), "the symlink is replaced, not followed")
		})
		t.Run("hard link to "+name, func(t *testing.T) {
			tree := newTree(t)
			assert.Contains(t, tree.requireRefused(t, layerPolicy, DefaultLimits, link("l", name)), "no such file or directory")
		})
		t.Run("whiteout of "+name, func(t *testing.T) {
			tree := newTree(t)
			tree.unpackLayers(t, []entry{file(filepath.Dir(name)+"/.wh.outside", "")}, []entry{symlink("s", filepath.Dir(name)), file("s/.wh.outside", "")})
		})
	}
	// The kernel's own links out of a root are not there.
	tree := newTree(t)
	tree.unpackLayers(t, []entry{symlink("s", "/proc/1/root"), directory("proc"), file("s/tmp/escaped", "x")})
	assert.FileExists(t, filepath.Join(tree.Dir, "proc/1/root/tmp/escaped"))
}

var longName = strings.Repeat("x", 250) + "/"

func TestUnpackRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		entries []entry
		want    string
	}{
		"root as a symlink":       {[]entry{symlink(".", "/etc")}, `entry 1 of the archive, symbolic link ".": the root of a tree must be a directory`},
		"root as a file":          {[]entry{file("/.", "x")}, "the root of a tree must be a directory"},
		"dots that lead to root":  {[]entry{symlink("a/../..", "/etc")}, "the root of a tree must be a directory"},
		"link to a directory":     {[]entry{directory("d"), link("l", "d")}, `hard link to the directory "d"`},
		"link to itself":          {[]entry{link("f", "./f"), file("f", "x")}, `hard link to "./f": no such file or directory; it can only lead to an earlier entry`},
		"links in a circle":       {[]entry{symlink("a", "b"), symlink("b", "a"), file("a/f", "x")}, `too many symbolic links in "/a"`},
		"file as a directory":     {[]entry{file("f", "x"), file("f/g", "x")}, `"/f" is not a directory`},
		"long component":          {[]entry{file(strings.Repeat("x", 256), "")}, "a component of the name is longer than 255 bytes"},
		"long name":               {[]entry{file(strings.Repeat("x/", 2500)+"f", "")}, "the name is longer than 4095 bytes"},
		"long through a symlink":  {[]entry{file(strings.Repeat(longName, 12)+"f", ""), symlink("s", strings.Repeat(longName, 12)), file("s/"+strings.Repeat(longName, 5)+"f", "")}, "the path is longer than 4095 bytes"},
		"deep":                    {[]entry{file(strings.Repeat("x/", 256)+"f", "")}, "the path has more than 256 components"},
		"deep through a symlink":  {[]entry{file(strings.Repeat("x/", 200)+"f", ""), symlink("s", strings.Repeat("x/", 200)), directory("s/" + strings.Repeat("y/", 57))}, "the path has more than 256 components"},
		"owner of lchown's no-op": {[]entry{file("f", "").withHeader(func(h *tar.Header) { h.Uid = 1<<32 - 1 })}, "the owner 4294967295:0 is out of range"},
		"large attribute": {[]entry{file("f", "").withHeader(func(h *tar.Header) {
			h.PAXRecords = map[string]string{"SCHILY.xattr.user.a": strings.Repeat("x", 66<<10)}
		})}, "the extended attributes have more than 65536 bytes"},
		"whiteout of nothing": {[]entry{file("d/.wh.", "")}, "the whiteout names no file"},
		"whiteout of a dot":   {[]entry{file("d/.wh...", "")}, "the whiteout names no file"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Contains(t, newTree(t).requireRefused(t, layerPolicy, DefaultLimits, test.entries...), test.want)
		})
	}
	tree := newTree(t)
	_, err := tree.UnpackLayer(context.Background(), strings.NewReader("no archive"+strings.Repeat(".", 1024)), layerPolicy, DefaultLimits, Result{})
	require.ErrorContains(t, err, "the archive is damaged after 0 entries")
	broken := fmt.Errorf("the digest is wrong")
	_, err = tree.UnpackLayer(context.Background(), io.MultiReader(packArchive(t, file("f", "x")), &failingReader{broken}), layerPolicy, DefaultLimits, Result{})
	require.ErrorIs(t, err, broken)
}

type failingReader struct{ err error }

func (r *failingReader) Read([]byte) (int, error) { return 0, r.err }

func TestUnpackObeysLimits(t *testing.T) {
	tree := newTree(t)
	assert.Contains(t, tree.requireRefused(t, layerPolicy, Limits{Entries: 10, Bytes: 3}, file("f", "text")), "the files have more than 3 bytes together")
	// A file of one exabyte takes half a kilobyte of archive: its size counts before anything is written.
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "bomb", Typeflag: tar.TypeReg, Size: 1 << 60, Format: tar.FormatPAX}))
	_, err := tree.UnpackLayer(context.Background(), &b, layerPolicy, DefaultLimits, Result{})
	require.ErrorContains(t, err, "the files have more than 1099511627776 bytes together")
	assert.NoFileExists(t, filepath.Join(tree.Dir, "bomb"))

	for _, before := range []Result{{Entries: 2}, {Bytes: 9}} { // lower layers count
		_, err = tree.UnpackLayer(context.Background(), packArchive(t, file("f", "text")), layerPolicy, Limits{Entries: 2, Bytes: 10}, before)
		require.ErrorContains(t, err, "; if the source is trusted, raise --max-")
	}

	// Directories that a name implies count, also those of lower layers and those that a symbolic link implies.
	for name, entries := range map[string][]entry{
		"implied":         {file("a/b/c/f", "")},
		"by a whiteout":   {file("a/b/c/.wh.f", "")},
		"by a symlink":    {symlink("s", "a/b"), file("s/c", "")},
		"in lower layers": {file("a/b/c", "")},
	} {
		tree := newTree(t)
		before := Result{}
		if name == "in lower layers" {
			before, err = tree.UnpackLayer(context.Background(), packArchive(t, file("x/y", "")), layerPolicy, Limits{Entries: 2}, before)
			require.NoError(t, err)
			entries = entries[:1]
			entries[0].Name = "a/f"
		}
		_, err = tree.UnpackLayer(context.Background(), packArchive(t, entries...), layerPolicy, Limits{Entries: 3, Bytes: 10}, before)
		require.ErrorContains(t, err, "there are more than 3 entries, implied directories counted; if the source is trusted, raise --max-entries", name)
	}

	// Ten million empty files: the stream ends where the limit is.
	r, stream := io.Pipe()
	go func() {
		w := tar.NewWriter(stream)
		for i := 0; i < 10_000_000; i++ {
			if w.WriteHeader(&tar.Header{Name: fmt.Sprintf("d/%d", i), Typeflag: tar.TypeReg}) != nil {
				return
			}
		}
	}()
	_, err = tree.UnpackLayer(context.Background(), r, layerPolicy, Limits{Entries: 2000, Bytes: 1}, Result{})
	r.Close()
	require.ErrorContains(t, err, "there are more than 2000 entries, implied directories counted; if the source is trusted, raise --max-entries")
}

// TestUnpackIsFrugal: the names of an archive, 80 MB here, are not kept in memory.
func TestUnpackIsFrugal(t *testing.T) {
	const alone = "GOJAIL_TEST_ALONE"
	if nstest.NeedRoot(t); os.Getenv(alone) == "" { // getrusage(2) has the largest child, and other tests start large ones
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestUnpackIsFrugal$")
		cmd.Env = append(os.Environ(), alone+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return
	}
	tree := newTree(t)
	r, stream := io.Pipe()
	defer r.Close()
	go func() {
		w := tar.NewWriter(stream)
		long := strings.Repeat(longName, 15)
		for i := range 20_000 {
			h := tar.Header{Name: fmt.Sprintf("%s%d", long, i), Typeflag: tar.TypeChar}
			if i%3 == 0 {
				h.Typeflag = tar.TypeDir
			}
			if w.WriteHeader(&h) != nil {
				return
			}
		}
		stream.CloseWithError(w.Close())
	}()
	result, err := tree.UnpackLayer(context.Background(), r, layerPolicy, DefaultLimits, Result{})
	require.NoError(t, err)
	assert.EqualValues(t, 20_015, result.Entries)
	var used unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_CHILDREN, &used)) // the largest child so far
	assert.Less(t, used.Maxrss, int64(60<<10), "KiB")
}

func TestUnpackPolicy(t *testing.T) {
	node := entry{tar.Header{Name: "dev/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3, Mode: 0o666}, ""}
	program := file("su", "x").withHeader(func(h *tar.Header) {
		h.Mode = 0o6755
		h.PAXRecords = map[string]string{
			"SCHILY.xattr.security.capability":     capability,
			"SCHILY.xattr.security.selinux":        "system_u:object_r:su_exec_t:s0\x00",
			"SCHILY.xattr.trusted.overlay.opaque":  "y",
			"SCHILY.xattr.user.overlay.redirect":   "/etc",
			"SCHILY.xattr.system.nfs4_acl":         "x",
			"SCHILY.xattr.user.checksum":           "abc",
			"SCHILY.xattr.system.posix_acl_access": "x",
		}
	})
	tree := newTree(t)
	result := tree.unpackLayers(t, []entry{directory("dev"), node, link("dev/zero", "dev/null"), program, node, file("dev/null", "x"), link("dev/file", "dev/null")})
	assert.Equal(t, map[string]int64{"device nodes": 3, "set-ID bits": 1, "file capabilities": 1, "extended attributes": 5}, result.LeftOut)
	assert.Equal(t, []string{"dev", "dev/file=x", "dev/null=x", "su=x"}, tree.listNames(t))
	assert.EqualValues(t, 0o100755, tree.statFile(t, "su").Mode)
	assert.Equal(t, []string{"user.checksum"}, listXattrs(t, filepath.Join(tree.Dir, "su")))

	tree = newTree(t)
	_, err := tree.UnpackLayer(context.Background(), packArchive(t, directory("dev"), node, program), Policy{Devices: DevicesMake, Setuid: true}, DefaultLimits, Result{})
	require.NoError(t, err)
	assert.EqualValues(t, 0o106755, tree.statFile(t, "su").Mode)
	assert.ElementsMatch(t, []string{"user.checksum", "security.capability"}, listXattrs(t, filepath.Join(tree.Dir, "su")))
	assert.EqualValues(t, unix.Mkdev(1, 3), tree.statFile(t, "dev/null").Rdev)

	refuse := newTree(t).requireRefused(t, Policy{Devices: DevicesRefuse}, DefaultLimits, node)
	assert.Equal(t, `entry 1 of the archive, character device "dev/null": is a device node; a jail has its own /dev, so leave it out: --devices=drop`, refuse)
	_, err = newTree(t).UnpackLayer(context.Background(), packArchive(t), Policy{Devices: "allow"}, DefaultLimits, Result{})
	require.EqualError(t, err, `device nodes: "allow": write drop, refuse or make`)
}

// capability is cap_net_raw=ep as the kernel stores it, VFS_CAP_REVISION_2.
const capability = "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

func listXattrs(t *testing.T, path string) []string {
	t.Helper()
	buffer := make([]byte, 4096)
	n, err := unix.Llistxattr(path, buffer)
	require.NoError(t, err)
	return strings.FieldsFunc(string(buffer[:n]), func(r rune) bool { return r == 0 })
}

func TestUnpackLayers(t *testing.T) {
	lower := []entry{directory("d"), file("d/a", "1"), file("d/b", "1"), directory("d/sub"), file("d/sub/x", "1"), file("top", "1")}
	for name, test := range map[string]struct {
		upper []entry
		want  []string
	}{
		"nothing":                      {nil, []string{"d", "d/a=1", "d/b=1", "d/sub", "d/sub/x=1", "top=1"}},
		"whiteout of a file":           {[]entry{file("d/.wh.a", "")}, []string{"d", "d/b=1", "d/sub", "d/sub/x=1", "top=1"}},
		"whiteout of a directory":      {[]entry{file(".wh.d", "")}, []string{"top=1"}},
		"whiteout before its file":     {[]entry{file("d/.wh.a", ""), file("d/a", "2")}, []string{"d", "d/a=2", "d/b=1", "d/sub", "d/sub/x=1", "top=1"}},
		"whiteout after its file":      {[]entry{file("d/a", "2"), file("d/.wh.a", "")}, []string{"d", "d/a=2", "d/b=1", "d/sub", "d/sub/x=1", "top=1"}},
		"whiteout of what is not":      {[]entry{file("d/.wh.q", "")}, []string{"d", "d/a=1", "d/b=1", "d/sub", "d/sub/x=1", "top=1"}},
		"whiteout, directory new":      {[]entry{file(".wh.d", ""), file("d/n", "2")}, []string{"d", "d/n=2", "top=1"}},
		"whiteout after directory new": {[]entry{file("d/n", "2"), file(".wh.d", "")}, []string{"d", "d/n=2", "top=1"}},
		"opaque":                       {[]entry{directory("d"), file("d/.wh..wh..opq", "")}, []string{"d", "top=1"}},
		"opaque first":                 {[]entry{file("d/.wh..wh..opq", ""), file("d/sub/y", "2")}, []string{"d", "d/sub", "d/sub/y=2", "top=1"}},
		"opaque last":                  {[]entry{file("d/sub/y", "2"), file("d/a", "2"), file("d/.wh..wh..opq", "")}, []string{"d", "d/a=2", "d/sub", "d/sub/y=2", "top=1"}},
		"opaque root":                  {[]entry{file("n", "2"), file(".wh..wh..opq", "")}, []string{"n=2"}},
		"marks of aufs":                {[]entry{file(".wh..wh.aufs", ""), file(".wh..wh.plnk/1", "")}, []string{"d", "d/a=1", "d/b=1", "d/sub", "d/sub/x=1", "top=1"}},
		"file for a directory":         {[]entry{file("d", "2")}, []string{"d=2", "top=1"}},
		"directory for a file":         {[]entry{directory("top"), file("top/n", "2")}, []string{"d", "d/a=1", "d/b=1", "d/sub", "d/sub/x=1", "top", "top/n=2"}},
		"symlink for a directory":      {[]entry{symlink("d", "top")}, []string{"d>top", "top=1"}},
		"hard link across layers":      {[]entry{link("d/l", "top")}, []string{"d", "d/a=1", "d/b=1", "d/l=1", "d/sub", "d/sub/x=1", "top=1"}},
		"hard link over a file":        {[]entry{link("d/a", "top")}, []string{"d", "d/a=1", "d/b=1", "d/sub", "d/sub/x=1", "top=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t)
			tree.unpackLayers(t, lower, test.upper)
			assert.Equal(t, test.want, tree.listNames(t))
			if tree.listNames(t)[0] == "d" && !strings.HasSuffix(name, "directory new") {
				assert.Equal(t, longAgo.Unix(), tree.statFile(t, "d").Mtim.Sec, "a directory keeps its time")
			}
		})
	}
	t.Run("through a link of a lower layer", func(t *testing.T) { // as /lib of a merged /usr
		tree := newTree(t)
		tree.unpackLayers(t, []entry{directory("usr/lib"), symlink("lib", "usr/lib")},
			[]entry{file("lib/new", "1"), file("usr/lib/.wh..wh..opq", "")})
		assert.Equal(t, []string{"lib>usr/lib", "usr", "usr/lib", "usr/lib/new=1"}, tree.listNames(t))
	})
	t.Run("a plain archive", func(t *testing.T) {
		tree := newTree(t)
		_, err := tree.UnpackLayer(context.Background(), packArchive(t, file(".wh.a", "x")), Policy{Devices: DevicesDrop}, DefaultLimits, Result{})
		require.NoError(t, err)
		assert.Equal(t, []string{".wh.a=x"}, tree.listNames(t), "is no layer")
	})
}

func TestUnpackLeavesHoles(t *testing.T) {
	tree := newTree(t)
	text := strings.Repeat("\x00", 4<<20) + "end" + strings.Repeat("\x00", 4<<20)
	tree.unpackLayers(t, []entry{file("f", text)})
	read, err := os.ReadFile(filepath.Join(tree.Dir, "f"))
	require.NoError(t, err)
	assert.True(t, text == string(read))
	st := tree.statFile(t, "f")
	assert.Less(t, st.Blocks*512, int64(1<<20))
}

func TestUnpackEndsWithItsContext(t *testing.T) {
	tree := newTree(t)
	why := fmt.Errorf("interrupted")
	for name, begun := range map[string]bool{"before it begins": false, "amid the layer": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			r, w, err := os.Pipe()
			require.NoError(t, err)
			closed := make(chan bool)
			defer func() {
				r.Close() // ends the writing
				<-closed
			}()
			if !begun {
				cancel(why)
			}
			go func() {
				defer close(closed)
				defer w.Close()
				if begun {
					big := bytes.Repeat([]byte("x"), 1<<20) // more than a pipe holds: the child reads
					w.Write(packArchive(t, file("f", string(big))).Bytes()[:1<<19])
					cancel(why)
				}
			}()
			_, err = tree.UnpackLayer(ctx, r, layerPolicy, DefaultLimits, Result{})
			assert.ErrorIs(t, err, why)
		})
	}
}

func TestChildIsForGojailOnly(t *testing.T) {
	nstest.NeedRoot(t)
	_, err := readRequest(`{"action": "layer", "target": "/"}`)
	require.EqualError(t, err, "this command is gojail's own, and runs in namespaces that gojail makes")
	_, err = readRequest("{")
	require.ErrorContains(t, err, "invalid request")
}

func TestStrip(t *testing.T) {
	tree := newTree(t)
	su := file("su", "text").withHeader(func(h *tar.Header) {
		h.Mode, h.PAXRecords = 0o4755, map[string]string{"SCHILY.xattr.security.capability": capability, "SCHILY.xattr.user.a": "b"}
	})
	null := entry{tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3, Mode: 0o666}, ""}
	entries := packArchive(t, directory("d"), symlink("d/out", "/outside"), su, link("same", "su"), null)
	keep := Policy{Devices: DevicesMake, Setuid: true}
	_, err := tree.UnpackLayer(context.Background(), entries, keep, DefaultLimits, Result{})
	require.NoError(t, err)
	result, err := tree.Strip(context.Background(), keep)
	require.NoError(t, err)
	assert.Equal(t, Result{Entries: 6, Bytes: 4}, result, "the root counts, a second name has no bytes")
	assert.EqualValues(t, 0o104755, tree.statFile(t, "su").Mode)
	_, err = tree.Strip(context.Background(), Policy{Devices: DevicesRefuse})
	require.ErrorContains(t, err, `"/null": is a device node`)
	result, err = tree.Strip(context.Background(), Policy{Devices: DevicesDrop})
	require.NoError(t, err)
	assert.EqualValues(t, 0o100755, tree.statFile(t, "su").Mode)
	assert.Equal(t, []string{"user.a"}, listXattrs(t, filepath.Join(tree.Dir, "su")))
	assert.NoFileExists(t, filepath.Join(tree.Dir, "null"))
	assert.EqualValues(t, 1, result.LeftOut["device nodes"])
}

func TestMark(t *testing.T) {
	tree := newTree(t)
	tree.unpackLayers(t, []entry{
		directory(".").withHeader(func(h *tar.Header) { h.Mode, h.Uid = 0o1777, 1000 }),
		symlink(contract.VersionFile, "../outside"),
	})
	require.NoError(t, tree.Mark(context.Background(), "v1"))
	assert.Equal(t, []string{contract.VersionFile + "=v1\n"}, tree.listNames(t))
	st := tree.statFile(t, "")
	assert.Equal(t, [2]uint32{syscall.S_IFDIR | 0o755, 0}, [2]uint32{st.Mode, st.Uid})
	assert.EqualValues(t, 0o100644, tree.statFile(t, contract.VersionFile).Mode)
}
