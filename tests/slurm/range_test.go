// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// allowRange gives alice the ids that --jail-root=range requires, and closes the jails' directory on the node.
func allowRange(t *testing.T, c *harness.Cluster) {
	t.Helper()
	for _, path := range []string{"/etc/subuid", "/etc/subgid"} {
		keep := readFile(c, path)
		require.NoError(t, os.WriteFile(c.Path(path), []byte("alice:300000:65536\n"), 0o644))
		t.Cleanup(func() { os.WriteFile(c.Path(path), []byte(keep), 0o644) })
	}
	require.NoError(t, os.Chmod(c.Path("/srv/jails"), 0o700))
	t.Cleanup(func() { os.Chmod(c.Path("/srv/jails"), 0o755) })
}

// TestBatchScriptOfARange: Slurm's file of the batch script belongs to the user, and in the jail to root, which runs and reads it.
func TestBatchScriptOfARange(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\"]\n", 1))
	allowRange(t, c)
	job := c.Batch(harness.Alice, "id -u; stat -c '%u %a' $0; tail -n1 $0\ntouch $0 2>/dev/null && echo written\n: the end\n",
		"--jail=debian", "--jail-root=range", "--output=/home/alice/range.out")
	t.Cleanup(func() { os.Remove(c.Path(job.Seen)) })
	assert.Equal(t, "COMPLETED", job.State, job)
	assert.Equal(t, "0\n0 700\n: the end\n", job.Output, job)
}
