// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

// countBytesRead returns how many bytes this thread has read from files (proc_pid_io(5)).
func countBytesRead(t *testing.T) (count int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/thread-self/io")
	require.NoError(t, err)
	_, err = fmt.Sscanf(string(text), "rchar: %d", &count)
	require.NoError(t, err)
	return count
}

// listBelow returns the list of a directory of this process, and how many bytes were read for it.
func listBelow(t *testing.T, dir string) (list string, read int64) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var out bytes.Buffer
	l := newLister(&out)
	before := countBytesRead(t)
	require.NoError(t, l.listPath(dir))
	require.NoError(t, l.out.Flush())
	assert.Empty(t, l.linked, "all names were seen")
	return out.String(), countBytesRead(t) - before
}

// TestListReadsNoHoles requires the digests of the whole content, and few bytes read.
func TestListReadsNoHoles(t *testing.T) {
	nstest.NeedRoot(t) // O_NOATIME
	const size = 64 << 20
	for name, data := range map[string]map[int64]string{
		"empty":  nil,
		"begin":  {0: "data"},
		"end":    {size - 4: "data"},
		"middle": {size / 2: "data", size/2 + 8<<20: "more"},
		"both":   {0: "data", size - 4: "more"},
	} {
		dir := t.TempDir()
		f, err := os.Create(filepath.Join(dir, "file"))
		require.NoError(t, err)
		require.NoError(t, f.Truncate(size))
		for at, text := range data {
			_, err := f.WriteAt([]byte(text), at)
			require.NoError(t, err)
		}
		whole := sha256.New()
		_, err = io.Copy(whole, struct{ io.Reader }{f}) // TestUnpackIsFrugal counts this process's memory, too
		require.NoError(t, err)
		if hole, err := f.Seek(0, unix.SEEK_HOLE); err != nil || hole == size {
			t.Skip("needs a file system with holes")
		}
		require.NoError(t, f.Close())
		list, read := listBelow(t, dir)
		assert.Contains(t, list, fmt.Sprintf("size=%d ", size), name)
		assert.Contains(t, list, fmt.Sprintf("sha256digest=%x\n", whole.Sum(nil)), name)
		assert.Less(t, read, int64(1<<20), name)
	}
}

// TestListOfFilesWithoutHoles: of other sizes, and of a file that a file system without holes has.
func TestListOfFilesWithoutHoles(t *testing.T) {
	nstest.NeedRoot(t)
	for _, size := range []int{0, 1, 4095, 4096, 4097, 128<<10 - 1, 128 << 10, 300_000} {
		content := bytes.Repeat([]byte("0123456789abcdef!"), size/17+1)[:size]
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), content, 0o644))
		list, _ := listBelow(t, dir)
		assert.Contains(t, list, fmt.Sprintf("sha256digest=%x\n", sha256.Sum256(content)))
	}
	f, err := os.Open("/proc/self/status") // lseek(2) fails with EINVAL for holes; its size is 0
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, newLister(io.Discard).readSparse(io.Discard, f))
}

// TestListReadsLinkedFilesOnce: a file with several names is read for one of them.
func TestListReadsLinkedFilesOnce(t *testing.T) {
	nstest.NeedRoot(t)
	dir := t.TempDir()
	content := bytes.Repeat([]byte("x"), 1<<20)
	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), append(content, name...), 0o644))
		for i := range 200 {
			require.NoError(t, os.Link(filepath.Join(dir, name), filepath.Join(dir, fmt.Sprintf("link-%d-%s", i, name))))
		}
	}
	list, read := listBelow(t, dir)
	for _, name := range []string{"a", "b"} {
		assert.Equal(t, 201, strings.Count(list, fmt.Sprintf("sha256digest=%x\n", sha256.Sum256(append(content, name...)))))
	}
	assert.Less(t, read, int64(3<<20))
}
