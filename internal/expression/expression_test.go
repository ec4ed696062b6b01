// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOf(t *testing.T) {
	rule := Of(`^a+$`)
	assert.True(t, rule().MatchString("aa"))
	assert.Same(t, rule(), rule())
	wrong := Of(`(`)
	assert.Panics(t, func() { wrong() })
}
