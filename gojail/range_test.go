// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSubRange(t *testing.T) {
	for text, want := range map[string][2]uint32{
		"alice:100000:65536\n":                       {100000, 65536},
		"bob:100000:65536\nalice:165536:131072":      {165536, 131072},
		"5001:200000:65536":                          {200000, 65536},
		"alice:100000:1000\nalice:300000:65536":      {300000, 65536}, // the first is too small
		"alice:0:65536":                              {},              // the node's own users
		"alice:4294901760:65536":                     {},              // beyond the last id
		"alice:100000\nalice:x:65536\nalice:1:2:3\n": {},
		"": {},
	} {
		first, count := subRange(text, []string{"5001", "alice"})
		assert.Equal(t, want, [2]uint32{first, count}, text)
	}
}

// TestSuidFilesOfAJailAreNotForTheNode: a jail below a closed directory, or on a mount that is nosuid.
func TestSuidFilesOfAJailAreNotForTheNode(t *testing.T) {
	top := filepath.Join(t.TempDir(), "jails")
	root := filepath.Join(top, "debian")
	require.NoError(t, os.MkdirAll(root, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(top), 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(top)), 0o755))
	assert.ErrorContains(t, refuseSuid(root), "chmod 700 "+top)
	require.NoError(t, os.Chmod(root, 0o700))
	assert.Error(t, refuseSuid(root), "the root itself has the users in it")
	require.NoError(t, os.Chmod(top, 0o700))
	assert.NoError(t, refuseSuid(root))
}
