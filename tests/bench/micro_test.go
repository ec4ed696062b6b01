// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPartsCanBeMeasured: what make bench compiles of gojail's code still goes together.
func TestPartsCanBeMeasured(t *testing.T) {
	repo, err := filepath.Abs("../..")
	require.NoError(t, err)
	assert.NoError(t, compile(repo, filepath.Join(t.TempDir(), "micro"), listMicroSources(repo)...))
}
