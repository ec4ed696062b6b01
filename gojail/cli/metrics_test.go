// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

// TestStaleMetricsAreRemoved: whatever keeps the file from being replaced, the one of ended jobs goes after a minute.
func TestStaleMetricsAreRemoved(t *testing.T) {
	s := newSite(t)
	dir, err := os.MkdirTemp("/run", "gojail-metrics-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	path := filepath.Join(dir, "n1.prom")
	state := s.dir + "/state-n1"
	writeMetrics := func() error {
		_, err := s.gojail("metrics", "--output="+dir+"/%n.prom")
		return err
	}
	require.NoError(t, writeMetrics())
	require.FileExists(t, path)
	for name, hinder := range map[string]func() (undo func()){
		"the lock is held": func() func() {
			lock, err := os.Create(state + "/metrics.lock")
			require.NoError(t, err)
			require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
			return func() { require.NoError(t, lock.Close()) }
		},
		"the state directory is refused": func() func() {
			require.NoError(t, os.Chmod(state, 0o777))
			return func() { require.NoError(t, os.Chmod(state, 0o700)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			undo := hinder()
			defer undo()
			nstest.WriteFile(t, path, "gojail_job_info 1\n")
			require.Error(t, writeMetrics())
			assert.FileExists(t, path, "it is of this minute")
			old := time.Now().Add(-10 * time.Minute)
			require.NoError(t, os.Chtimes(path, old, old))
			assert.ErrorContains(t, writeMetrics(), "; the file "+path+", which was out of date, is removed")
			assert.NoFileExists(t, path)
		})
	}
}
