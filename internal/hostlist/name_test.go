// SPDX-License-Identifier: Apache-2.0

package hostlist

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNameIsTheReverseOfIndex(t *testing.T) {
	for _, text := range []string{"a", "gpu[01-04,7],login", "rack[1-2]n[08-12]", "a[1-2]b[1-3]c[5,9-10],x"} {
		h, err := Parse(text)
		require.NoError(t, err)
		var all []string
		for i := range h.Len() {
			all = append(all, h.Name(i))
			at, in := h.Index(h.Name(i))
			assert.True(t, in && at == i, "%s: place %d is %s", text, i, h.Name(i))
		}
		assert.Equal(t, h.expand(), all)
		assert.Panics(t, func() { h.Name(h.Len()) })
	}
}
