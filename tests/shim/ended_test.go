// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestJobIsBackAfterItsEndFailed: a requeued job has not ended, whatever its earlier end left: a session finds no job that is noted. The note
// stays until the new run has a sandbox.
func TestJobIsBackAfterItsEndFailed(t *testing.T) {
	requireRoot(t)
	h := buildHost(t)
	h.makeJail(t)
	scratch, note, other := filepath.Join(h.dir, "scratch"), filepath.Join(h.dir, "state/ended/7"), filepath.Join(h.dir, "state/ended/8")
	require.NoError(t, os.MkdirAll(filepath.Dir(note), 0o700))
	require.NoError(t, os.WriteFile(note, nil, 0o600))
	require.NoError(t, os.WriteFile(other, nil, 0o600))

	require.NoError(t, os.WriteFile(scratch, nil, 0o600))
	out := h.runCalls(t, stepCalls, "HOST_STEP=0")
	require.Contains(t, out, "cannot open the scratch directory")
	assert.FileExists(t, note, "there is no new run yet")

	require.NoError(t, os.Remove(scratch))
	out = h.runCalls(t, stepCalls, "HOST_STEP=0")
	require.Contains(t, out, "marker jail")
	assert.NoFileExists(t, note)
	assert.FileExists(t, other, "that of another job")
	require.NoError(t, os.Remove(other))
	out = h.runCalls(t, "init,job_epilog", "HOST_CONTEXT=script")
	assert.Equal(t, "init 0\njob_epilog 0\n", out)
}
