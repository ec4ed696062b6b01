// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestCollectionWhileAJobRuns: gc keeps the version of a job that runs, and removes it after its end.
func TestCollectionWhileAJobRuns(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, versionedConfig)
	newStore(t, c)
	first := buildVersion(t, c, debianImage(t, c, "first\n"))
	jailCommand(t, c, "switch", "debian")
	sees(t, c, "first\n")
	submitScript(t, c, "echo begun; until [ -e ended ]; do sleep 0.1; done\n", "--jail=stored", "-wn1")
	home := c.Path(filepath.Join("/srv/store/debian/versions", first, "home/alice"))
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		found, _ := filepath.Glob(filepath.Join(home, "slurm-*.out"))
		return len(found) == 1
	}))
	second := buildVersion(t, c, debianImage(t, c, "second\n"))
	assert.Regexp(t, "still has "+first+`: n1 \(job \d+, (job \d+, )*template of jail stored\), as of `, jailCommand(t, c, "switch", "debian", second))
	sees(t, c, "second\n")
	time.Sleep(1100 * time.Millisecond) // a lease counts if it is a second newer than the switch

	const doubt = "cannot determine whether it is in use"
	assert.Contains(t, jailCommand(t, c, "gc", "--keep", "0"), "kept version "+first+" of jail debian: ")
	for _, node := range harness.Nodes {
		require.Zero(t, c.Gojail(node, "sweep").Code)
	}
	out := jailCommand(t, c, "gc", "--keep", "0")
	assert.Contains(t, out, "kept version "+first+" of jail debian: in use on n1 (job ")
	assert.NotContains(t, out, doubt)
	sees(t, c, "second\n")

	require.NoError(t, os.WriteFile(filepath.Join(home, "ended"), nil, 0o644))
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		require.Zero(t, c.Gojail("n1", "sweep").Code)
		out = jailCommand(t, c, "gc", "--keep", "0")
		return strings.Contains(out, "removed version "+first+" of jail debian\n")
	}), out)
	assert.NoDirExists(t, filepath.Dir(filepath.Dir(home)))
	sees(t, c, "second\n")
}
