// SPDX-License-Identifier: Apache-2.0

package oneline

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

func TestBothIsOneLine(t *testing.T) {
	a, b := fmt.Errorf("a: %w", unix.EPERM), fmt.Errorf("b")
	assert.EqualError(t, Both(a, Both(nil, b)), "a: operation not permitted; b")
	assert.ErrorIs(t, Both(a, b), unix.EPERM)
	assert.NoError(t, Both(nil, nil))
}
