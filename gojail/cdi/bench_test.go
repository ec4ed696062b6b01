// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkEdits is reading the files and collecting what one GPU brings.
func BenchmarkEdits(b *testing.B) {
	n := newNode(b)
	for b.Loop() {
		r, err := Read(n.source)
		require.NoError(b, err)
		_, err = r.Edits("nvidia.com/gpu=0")
		require.NoError(b, err)
	}
}
