// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

func readOwn(t testing.TB) string {
	t.Helper()
	ns, err := os.Readlink(current)
	require.NoError(t, err)
	return ns
}

func makeNamespace(t testing.TB) (int, string) {
	t.Helper()
	if !nstest.IsRoot() {
		t.Skip("needs root: it makes network namespaces")
	}
	ns, err := New()
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(ns) })
	name, err := os.Readlink(filepath.Join("/proc/self/fd", strconv.Itoa(ns)))
	require.NoError(t, err)
	return ns, name
}

func TestInside(t *testing.T) {
	before := readOwn(t)
	ns, name := makeNamespace(t)
	assert.NotEqual(t, before, name)
	var seen string
	broken := errors.New("broken")
	err := RunInside(ns, func() error {
		assert.NotEqual(t, unix.Getpid(), unix.Gettid(), "the main thread is left alone")
		seen, _ = os.Readlink(current)
		return broken
	})
	assert.ErrorIs(t, err, broken)
	assert.Equal(t, name, seen)
	assert.Equal(t, before, readOwn(t))
}

// TestNoThreadStaysThere enters a namespace from many goroutines at once, also from that of
// the main thread; afterwards all threads are in their own namespace.
func TestNoThreadStaysThere(t *testing.T) {
	ns, name := makeNamespace(t)
	home := readOwn(t)
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			if runtime.LockOSThread(); unix.Gettid()%2 == 0 {
				defer runtime.UnlockOSThread()
			}
			err := RunInside(ns, func() error {
				seen, _ := os.Readlink(current)
				assert.Equal(t, name, seen)
				return RunInside(ns, func() error { return nil })
			})
			assert.NoError(t, err)
		})
	}
	wait.Wait()
	require.Eventually(t, func() bool {
		threads, _ := filepath.Glob("/proc/self/task/*/ns/net")
		for _, thread := range threads {
			if at, err := os.Readlink(thread); err == nil && at != home {
				return false
			}
		}
		return true
	}, 10e9, 1e6)
}

func TestInsideWhatIsNoNamespace(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: setns")
	}
	file, err := os.Open("/dev/null")
	require.NoError(t, err)
	defer file.Close()
	err = RunInside(int(file.Fd()), func() error { t.Error("it ran"); return nil })
	assert.ErrorIs(t, err, unix.EINVAL)
	assert.ErrorContains(t, err, "is not an open network namespace")
	assert.ErrorIs(t, RunInside(-1, func() error { t.Error("it ran"); return nil }), unix.EBADF)
	file.Close()
	_, err = os.Readlink(current)
	assert.NoError(t, err)
}
