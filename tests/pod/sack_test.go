// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCommandsInAJail: with slurmd's socket in the place of munge's, Slurm's commands work in jails, and as the job's user
// only.
func TestCommandsInAJail(t *testing.T) {
	c := sharedCluster(t)
	require.NoError(t, c.writeConfigMap("gojail-sack", 0o644, map[string]string{"gojail.toml": gojailToml + "[slurm]\nmunge = \"/run/slurm/sack.socket\"\n"}))
	c.startNode(t, node{gojail: c.dir + "/gojail-sack/gojail.toml:/etc/gojail/gojail.toml:ro"})
	const steps = "srun -Q cat " + marker + "\nsrun -Q --jail=none hostname\nsinfo -ho %P\nsqueue -ho %u\n"
	assert.Equal(t, "debian\nn1\nmain*\nalice\n", c.batch(t, steps))
	requireOutput(t, "debian", c.srun("srun", "-Q", "--overlap", "cat", marker))
	requireOutput(t, "debian", c.srun("--jail-root=self", "srun", "-Q", "--overlap", "cat", marker))
	r := c.srun("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=by_alice")
	assert.Contains(t, r.Stderr, "Invalid user id")
	check := c.onNode("gojail", "check")
	assert.Contains(t, check.Stdout, "OK    munge: /run/slurm/sack.socket exists", check)
}
