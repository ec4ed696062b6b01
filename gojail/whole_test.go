// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// wholeConfig is a gojail.toml with every key.
func wholeConfig(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../config/testdata/whole.toml")
	require.NoError(t, err)
	return string(text)
}
