// SPDX-License-Identifier: Apache-2.0

package oneline

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestText(t *testing.T) {
	assert.Equal(t, "one; two", Text("one\ntwo\n"))
	assert.Equal(t, "one", Text("one"))
}

func TestError(t *testing.T) {
	err := Error(errors.Join(errors.New("one"), fs.ErrNotExist))
	assert.EqualError(t, err, "one; file does not exist")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.NoError(t, Error(nil))
}
