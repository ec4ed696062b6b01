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

// TestPluginThatCopiesTheStage: after gojail, another plugin makes a mount namespace of its own from the stage. All mounts have other ids in
// it: what Slurm opens is told from files of the node as without that plugin.
func TestPluginThatCopiesTheStage(t *testing.T) {
	c := harness.Start(t, jailed)
	buildPlugin(t, c, "copy")
	stack := readFile(c, "/etc/slurm/plugstack.conf")
	replaceFile(t, c.Path("/etc/slurm/plugstack.conf"), stack+"\nrequired /opt/copy/spank_copy.so\n")
	for _, node := range harness.Nodes { // srun in a jail is to find the new plugin
		require.Zero(t, c.Gojail(node, "init", "debian").Code)
	}
	require.NoError(t, os.MkdirAll(c.Path("/opt/open"), 0o755))
	require.NoError(t, os.Chmod(c.Path("/opt/open"), 0o1777))
	job := c.Batch(harness.Alice, "echo batch; srun --output=/home/alice/step%t echo step; cat step0", "--jail=debian", "-wn1", "--output=/home/alice/copied")
	assert.Equal(t, "COMPLETED", job.State, job)
	assert.Equal(t, "batch step", strings.Join(strings.Fields(job.Output), " "), job)
	assert.Equal(t, jailHome+"copied", job.Seen)
	r := c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "--output=/opt/open/out%t", "echo", "ran")
	assert.NotZero(t, r.Code, r)
	assert.NotContains(t, readFile(c, "/opt/open/out0"), "ran")
	assert.Contains(t, readFile(c, "/opt/open/out0"), "--output or --error: the jail does not show /opt/open/out0, which is the node's")
}
