// SPDX-License-Identifier: Apache-2.0

package nstest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// WaitUntilClosed waits until no process has a file open whose path matches a pattern. A process that is killed while it starts
// a child leaves its flock(2) locks to the child, until execve(2) closes the files: the next command would find them taken.
func WaitUntilClosed(t *testing.T, pattern string) {
	t.Helper()
	require.Eventually(t, func() bool {
		links, err := filepath.Glob("/proc/[0-9]*/fd/*")
		require.NoError(t, err)
		return !slices.ContainsFunc(links, func(link string) bool {
			target, err := os.Readlink(link)
			open, _ := filepath.Match(pattern, target)
			return err == nil && open
		})
	}, 10*time.Second, 10*time.Millisecond, "a process has %s open", pattern)
}
