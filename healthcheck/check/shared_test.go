// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestReadOnce(t *testing.T) {
	reads, broken := 0, errors.New("broken")
	read := func() (int, error) { reads++; return reads, broken }
	s := &Shared{}
	for range 2 {
		n, err := ReadOnce(s, "a", read)
		assert.Equal(t, 1, n)
		assert.Equal(t, broken, err)
	}
	n, _ := ReadOnce(s, "b", read)
	assert.Equal(t, 2, n)
	n, _ = ReadOnce(nil, "a", read)
	assert.Equal(t, 3, n, "without a cache")
}
