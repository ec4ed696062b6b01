// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRecordOfAnEditHasNoArguments: users can read the store.
func TestRecordOfAnEditHasNoArguments(t *testing.T) {
	s, store := newStoreSite(t)
	current := s.buildBusybox(t)
	s.must(t, "jail", "edit", "debian", "--", "sh", "-c", ": --password=hunter2")
	list, _ := s.versions(t)
	require.Len(t, list, 2)
	require.Equal(t, current, list[0])
	text, err := os.ReadFile(filepath.Join(store, "debian/records", list[1]+".json"))
	require.NoError(t, err)
	assert.NotContains(t, string(text), "hunter2")
	var record struct{ Source string }
	require.NoError(t, json.Unmarshal(text, &record))
	assert.Equal(t, "edit: sh", record.Source)
	require.NoError(t, filepath.Walk(store, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.Mode()&0o044 == 0 || !info.Mode().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		assert.NotContains(t, string(text), "hunter2", path)
		return err
	}))
}
