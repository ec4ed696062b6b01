// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/internal/nstest"
)

const mountTable = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:30 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
24 22 0:31 / /data ro,relatime shared:3 - ext4 /dev/sdb rw
25 22 0:32 / /err rw,relatime shared:4 - ext4 /dev/sdc ro
`

func TestMounted(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	put(t, h.Roots.Proc+"/self/mountinfo", mountTable)
	for _, c := range []struct {
		fs      check.FileSystem
		verdict check.Verdict
		text    string
	}{
		{check.FileSystem{Path: "/home"}, check.OK, ""},
		{check.FileSystem{Path: "/home/"}, check.OK, ""},
		{check.FileSystem{Path: "/home/deep/er", Any: true}, check.OK, ""},
		{check.FileSystem{Path: "/home/deep"}, check.Fail, "/home/deep is not mounted"},
		{check.FileSystem{Path: "/data"}, check.Fail, "/data is mounted read-only"},
		{check.FileSystem{Path: "/data", ReadOnly: true}, check.OK, ""},
		{check.FileSystem{Path: "/err"}, check.Fail, "/err is mounted read-only"},
	} {
		s.FileSystems = []check.FileSystem{c.fs}
		expect(t, once(h, mounted, s), c.verdict, c.text)
	}
	put(t, h.Roots.Proc+"/self/mountinfo", "garbage\n")
	expect(t, once(h, mounted, s), check.Unknown, "")
	put(t, h.Roots.Proc+"/self/mountinfo", mountTable)
	s.FileSystems = nil
	expect(t, once(h, mounted, s), check.OK, "")
}

func TestSpace(t *testing.T) {
	for _, c := range []struct {
		free, files uint64
		verdict     check.Verdict
	}{{50, 50, check.OK}, {4, 50, check.Warn}, {1, 50, check.Fail}, {50, 1, check.Fail}, {0, 50, check.Fail}, {50, 0, check.Fail}} {
		var p problems
		judgeSpace(&p, "/x", 98, &unix.Statfs_t{Blocks: 100, Bfree: c.free, Bavail: c.free, Files: 100, Ffree: c.files}, p.addFailure)
		expect(t, p.buildFinding("good"), c.verdict, "")
	}
	var p problems
	judgeSpace(&p, "/x", 98, &unix.Statfs_t{}, p.addFailure) // overlay and some network file systems tell nothing
	expect(t, p.buildFinding("good"), check.OK, "")
}

func TestStorageAnswers(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	dir := t.TempDir()
	s.FileSystems = []check.FileSystem{{Path: dir, Full: 100}}
	expect(t, once(h, full, s), check.OK, "")
	expect(t, once(h, writable, s), check.OK, "")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	s.FileSystems = append(s.FileSystems, check.FileSystem{Path: dir + "/gone"})
	expect(t, once(h, writable, s), check.Fail, dir+"/gone: cannot create a file: no such file or directory")
	expect(t, once(h, full, s), check.Fail, "")
}

// A job may fill a file system that users can write to, so that alone drains no node.
func TestAJobThatFillsAFileSystem(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: a tmpfs")
	}
	h, s := testHost(t), config.DefaultSettings()
	dir := t.TempDir()
	require.NoError(t, unix.Mount("none", dir, "tmpfs", 0, "size=1m,nr_inodes=8"))
	t.Cleanup(func() { unix.Unmount(dir, 0) })
	s.FileSystems = []check.FileSystem{{Path: dir}}
	asked := *s
	asked.FileSystems = []check.FileSystem{{Path: dir, Full: 90}}
	expect(t, once(h, full, s), check.OK, "")
	require.NoError(t, unix.Fallocate(touch(t, dir+"/job"), 0, 0, 1<<20))
	expect(t, once(h, full, s), check.Warn, dir+" is full (space)")
	expect(t, once(h, writable, s), check.Warn, dir+" has no room for a file")
	expect(t, once(h, full, &asked), check.Fail, dir+" is full (space)")
	require.NoError(t, os.Truncate(dir+"/job", 0))
	for i := range 6 {
		touch(t, fmt.Sprint(dir, "/", i))
	}
	expect(t, once(h, full, s), check.Warn, dir+" is full (inodes)")
	expect(t, once(h, writable, s), check.Warn, dir+" has no room for a file")
	expect(t, once(h, full, &asked), check.Fail, dir+" is full (inodes)")
}

// touch creates a file that stays open until the end of the test.
func touch(t *testing.T, path string) int {
	f, err := os.Create(path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return int(f.Fd())
}

// A killed run leaves no file on file systems that support files without a name.
func TestAProbeHasNoName(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "gojail-test-")
	if err != nil {
		t.Skip("no tmpfs on this machine, which has files without a name for certain")
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f, _, err := openScratchFile(dir, "n1")
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteString("x")
	assert.NoError(t, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)

	f, remove, err := openScratchFile("/proc/self/nothing", "n1")
	assert.Error(t, err)
	assert.Nil(t, f)
	assert.Nil(t, remove)
}

// The probe does not wait for data that jobs have written to the page cache: it has no page
// there.
func TestAProbePassesTheCache(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/f")
	require.NoError(t, err)
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFL, unix.O_DIRECT); err != nil {
		t.Skipf("the temporary directory's file system: %v", err)
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, 0)
	require.NoError(t, err)
	require.NoError(t, writeDirect(f))
	var pages unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &pages, 0); err != nil {
		t.Skipf("needs Linux 6.5: %v", err)
	}
	assert.Zero(t, pages.Cache)
	st, err := f.Stat()
	require.NoError(t, err)
	assert.EqualValues(t, os.Getpagesize(), st.Size())
}

func TestAProbeOfAFileSystemThatIsACache(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: a ramfs")
	}
	dir := t.TempDir()
	require.NoError(t, unix.Mount("none", dir, "ramfs", 0, ""))
	t.Cleanup(func() { unix.Unmount(dir, 0) })
	f, err := os.Create(dir + "/f")
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, writeDirect(f))
	text, err := os.ReadFile(dir + "/f")
	require.NoError(t, err)
	assert.Contains(t, string(text), "gojail-healthcheck\n")
}

func TestHangingStorageIsNamed(t *testing.T) {
	s := config.DefaultSettings()
	s.FileSystems = []check.FileSystem{{Path: "/good"}, {Path: "/hung"}}
	ctx, cancel := context.WithCancel(context.Background())
	never := make(chan struct{})
	defer close(never)
	f, failed := probeFileSystems(ctx, s, func(fs check.FileSystem, _ *problems) {
		if fs.Path == "/hung" {
			cancel()
			<-never
		}
	})
	assert.Equal(t, check.Fail, f.Verdict)
	assert.Contains(t, f.Text, "/hung does not answer")
	assert.Contains(t, failed, "/hung")
}

// A file system that was full is good again only when its usage is some points below the limit.
func TestFullUntilThereIsRoom(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	dir := t.TempDir()
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &st))
	if st.Blocks == 0 {
		t.Skip("the temporary directory's file system does not tell its space")
	}
	used := 100 * max(1-float64(st.Bavail)/float64(st.Blocks-st.Bfree+st.Bavail), 1-float64(st.Ffree)/float64(max(st.Files, 1)))
	s.FileSystems = []check.FileSystem{{Path: dir, Full: min(100, used+fullHysteresis/2.0)}}
	f := again(h, full, s, check.Finding{})
	expect(t, f, check.Warn, "")
	assert.JSONEq(t, "null", string(f.State))
	f.State = []byte(`["` + dir + `"]`)
	f = again(h, full, s, f)
	expect(t, f, check.Fail, "")
	assert.JSONEq(t, `["`+dir+`"]`, string(f.State))
}
