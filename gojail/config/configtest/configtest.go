// SPDX-License-Identifier: Apache-2.0

// Package configtest has a gojail.toml for tests.
package configtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whole returns a gojail.toml with every key.
func Whole(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../config/testdata/whole.toml")
	require.NoError(t, err)
	return string(text)
}
