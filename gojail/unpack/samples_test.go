// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

// TestSamples unpacks an image of each type, shape and end of an archive.
func TestSamples(t *testing.T) {
	for name, s := range allSamples(t) {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t)
			result, err := tree.unpackSample(t, s)
			if s.refused != "" {
				require.ErrorContains(t, err, s.refused)
				assert.NotContains(t, err.Error(), "\n", "one line")
				return
			}
			require.NoError(t, err)
			if s.want != nil {
				assert.Equal(t, s.want, tree.describeTree(t))
			} else {
				assert.Empty(t, tree.listNames(t))
			}
			assert.Equal(t, s.leftOut, result.LeftOut)
		})
	}
}

// TestXattrsOfTar has GNU tar write names that a record cannot have.
func TestXattrsOfTar(t *testing.T) {
	tree, dir := newTree(t), t.TempDir()
	nstest.WriteFile(t, filepath.Join(dir, "a"), "1")
	names := []string{"user.a=b", "user.50%", "user.%3D"}
	for _, name := range names {
		if err := unix.Setxattr(filepath.Join(dir, "a"), name, []byte("x"), 0); err == unix.EOPNOTSUPP {
			t.Skip("needs a file system with extended attributes")
		} else {
			require.NoError(t, err)
		}
	}
	text, err := exec.Command("tar", "-C", dir, "-cf", "-", "--xattrs", "--xattrs-include=*", "a").Output()
	require.NoError(t, err)
	_, err = tree.UnpackLayer(t.Context(), bytes.NewReader(text), layerPolicy, DefaultLimits, Result{})
	require.NoError(t, err)
	assert.ElementsMatch(t, names, listXattrs(t, filepath.Join(tree.Dir, "a")))
}
