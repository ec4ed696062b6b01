// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIsName(t *testing.T) {
	for _, name := range []string{"a", "Z", "0", "debian-12.4_rc", strings.Repeat("a", NameMax), "a..b"} {
		assert.True(t, IsName(name), name)
	}
	for _, name := range []string{"", ".", "..", ".a", "-a", "_a", "a/b", "a b", "a\n", "\x00", "ä", "aä", strings.Repeat("a", NameMax+1)} {
		assert.False(t, IsName(name), "%q", name)
	}
	assert.Contains(t, NameRule, fmt.Sprintf("at most %d", NameMax))
}
