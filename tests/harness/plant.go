// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// PlantFile puts a file into the root of a jail, as a path of the cluster, for the rest of the test. The files of jails
// are hard links to the cache: an existing file is moved aside.
func (c *Cluster) PlantFile(t testing.TB, path string, text []byte) {
	t.Helper()
	path = c.Path(path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	if _, err := os.Lstat(path); err == nil {
		require.NoError(t, os.Rename(path, path+".was"))
	}
	t.Cleanup(func() {
		os.Remove(path)
		if _, err := os.Lstat(path + ".was"); err == nil {
			require.NoError(t, os.Rename(path+".was", path))
		}
	})
	require.NoError(t, os.WriteFile(path, text, 0o755))
}
