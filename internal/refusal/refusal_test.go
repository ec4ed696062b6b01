// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIs(t *testing.T) {
	err := Errorf("no %w", fs.ErrNotExist)
	assert.EqualError(t, err, "no file does not exist")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.True(t, Is(err))
	assert.True(t, Is(errors.Join(fmt.Errorf("--jail-mount: %w", err), nil)))
	assert.NoError(t, Mark(nil))
	assert.False(t, Is(nil))
	assert.False(t, Is(fs.ErrNotExist))
}
