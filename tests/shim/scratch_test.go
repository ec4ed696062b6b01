// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestFilesOfAnEarlierRun: a requeued job does not get the /tmp that it had before the node was booted, and keeps the one that it has.
func TestFilesOfAnEarlierRun(t *testing.T) {
	requireRoot(t)
	h := buildHost(t)
	h.makeJail(t)
	config, err := os.ReadFile(filepath.Join(h.dir, "gojail.toml"))
	require.NoError(t, err)
	_, debian, _ := strings.Cut(string(config), "[jail.debian]")
	require.NoError(t, os.WriteFile(filepath.Join(h.dir, "gojail.toml"), []byte(string(config)+"[jail.other]"+debian), 0o600))
	t.Cleanup(func() { endRecorded(t, filepath.Join(h.dir, "state/jails/other/zygote")) })
	jobs := filepath.Join(h.dir, "scratch/jobs")
	require.NoError(t, os.MkdirAll(filepath.Join(jobs, "7/tmp/torn"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(jobs, "7/root.debian"), 0o755))
	require.NoError(t, os.Chown(filepath.Join(jobs, "7"), 5001, -1))
	require.NoError(t, os.WriteFile(filepath.Join(jobs, ".trash"), nil, 0o600))
	out := h.runCalls(t, stepCalls, "HOST_STEP=0")
	assert.Contains(t, out, "error: gojail: an earlier run of the job left "+jobs+"/7, which cannot be removed: Not a directory; ask your administrator to run: gojail sweep")
	assert.NotContains(t, out, "marker")
	assert.NoFileExists(t, filepath.Join(h.dir, "state/jobs/7/.scratch"), "the next attempt would take the files for its own")

	require.NoError(t, os.Remove(filepath.Join(jobs, ".trash")))
	out = h.runCalls(t, stepCalls, "HOST_STEP=0")
	assert.Contains(t, out, "marker jail")
	assert.DirExists(t, filepath.Join(jobs, "7/tmp"))
	assert.NoDirExists(t, filepath.Join(jobs, "7/tmp/torn"))
	assert.NoDirExists(t, filepath.Join(jobs, "7/root.debian"))
	assert.Eventually(t, func() bool { _, err := os.Lstat(filepath.Join(jobs, ".trash")); return os.IsNotExist(err) }, time.Minute, 10*time.Millisecond)
	assert.NoDirExists(t, filepath.Join(h.dir, "state/ended"))

	require.NoError(t, os.WriteFile(filepath.Join(jobs, "7/tmp/own"), nil, 0o600))
	for _, held := range []bool{true, false} {
		if !held { // the other sandbox is in the PID namespace of the first, and ends with it
			endRecorded(t, filepath.Join(h.dir, "state/jobs/7/debian"))
		}
		out = h.runCalls(t, stepCalls, "HOST_STEP=0", "HOST_JAIL=other")
		assert.Contains(t, out, "marker jail")
		assert.FileExists(t, filepath.Join(jobs, "7/tmp/own"))
	}
	out = h.runCalls(t, "init,job_epilog", "HOST_CONTEXT=script")
	assert.Equal(t, "init 0\njob_epilog 0\n", out)
	assert.NoDirExists(t, filepath.Join(jobs, "7"))
}
