// SPDX-License-Identifier: Apache-2.0

package output

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHead(t *testing.T) {
	h := &Head{Most: 3}
	for range 2 {
		n, err := h.Write([]byte("ab"))
		require.NoError(t, err)
		assert.Equal(t, 2, n)
	}
	assert.Equal(t, "aba", string(h.Bytes()))
}
