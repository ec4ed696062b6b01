// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
)

// manyErrors cannot be compared.
type manyErrors []error

func (m manyErrors) Error() string { return fmt.Sprint(len(m), " errors") }

func TestJailError(t *testing.T) {
	for want, err := range map[string]error{
		"jail a: file does not exist":         JailError("a", JailError("a", os.ErrNotExist)),
		"jail a: x: file does not exist":      JailError("a", JailErrorf("a", "x: %w", os.ErrNotExist)),
		"jail a: jail b: file does not exist": JailError("a", JailError("b", os.ErrNotExist)),
		"jail a: x":                           JailError("a", errors.New("x")),
		"jail a: 2 errors":                    JailError("a", manyErrors{os.ErrNotExist, nil}),
	} {
		assert.EqualError(t, err, want)
		assert.Equal(t, want, "jail a: "+CutJail("a", err).Error())
		assert.Equal(t, err, CutJail("b", err))
	}
	assert.NoError(t, JailError("a", nil))
	assert.NoError(t, CutJail("a", nil))
	assert.ErrorIs(t, JailError("a", os.ErrNotExist), os.ErrNotExist)
	assert.EqualError(t, CutJail("a", manyErrors{nil}), "1 errors")
}
