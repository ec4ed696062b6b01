// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestScratchOfUsers: whoever owns the scratch directory, or a directory that is missing above it no longer, could replace the
// directories in it that root works with.
func TestScratchOfUsers(t *testing.T) {
	requireRoot(t)
	h := buildHost(t)
	h.makeJail(t)
	const user = 65534
	jailConfig, err := os.ReadFile(filepath.Join(h.dir, "gojail.toml"))
	require.NoError(t, err)
	scratch := filepath.Join(h.dir, "scratch")
	for _, row := range []struct {
		name     string
		prepare  func() error
		scratch  string // below h.dir
		offender string // "" if the step runs
	}{
		{"a user's", func() error { return os.Chown(scratch, user, user) }, "scratch", "scratch"},
		{"writable by all", func() error { return os.Chmod(scratch, 0o777) }, "scratch", "scratch"},
		{"below a user's", func() error { return os.Chown(scratch, user, user) }, "scratch/gojail", "scratch"},
		{"below a user's link", func() error {
			require.NoError(t, os.Symlink("/var", filepath.Join(scratch, "link")))
			return os.Lchown(filepath.Join(scratch, "link"), user, user)
		}, "scratch/link/gojail-none/gojail", "scratch/link"},
		{"jobs of a user", func() error {
			require.NoError(t, os.Mkdir(filepath.Join(scratch, "jobs"), 0o700))
			return os.Chown(filepath.Join(scratch, "jobs"), user, user)
		}, "scratch", "scratch/jobs"},
		{"sticky", func() error { return os.Chmod(scratch, 0o777|os.ModeSticky) }, "scratch", ""},
	} {
		require.NoError(t, os.RemoveAll(scratch))
		require.NoError(t, os.Mkdir(scratch, 0o755))
		require.NoError(t, row.prepare())
		replaced := []byte(strings.Replace(string(jailConfig), `"`+scratch+`"`, `"`+filepath.Join(h.dir, row.scratch)+`"`, 1))
		require.NoError(t, os.WriteFile(filepath.Join(h.dir, "gojail.toml"), replaced, 0o600))
		out := h.runCalls(t, stepCalls, "HOST_STEP=0")
		if row.offender == "" {
			assert.Contains(t, out, "marker jail", row.name)
			continue
		}
		assert.Contains(t, out, "error: gojail: the scratch directory "+filepath.Join(h.dir, row.offender)+
			" can be changed by others than root; ask your administrator to run: gojail check", row.name)
		assert.NotContains(t, out, "marker", row.name)
		assert.NoDirExists(t, filepath.Join(h.dir, row.scratch, "jobs/7"), row.name)
	}
	out := h.runCalls(t, "init,job_epilog", "HOST_CONTEXT=script")
	assert.Equal(t, "init 0\njob_epilog 0\n", out)
	assert.NoDirExists(t, filepath.Join(scratch, "jobs/7"))
}
