// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkEdits measures reading the files and finding the edits of one GPU.
func BenchmarkEdits(b *testing.B) {
	n := newNode(b)
	for b.Loop() {
		r, err := Read(n.source)
		require.NoError(b, err)
		_, err = r.Edits("nvidia.com/gpu=0")
		require.NoError(b, err)
	}
}
