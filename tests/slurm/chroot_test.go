// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestSlurmdInAChroot: the jail's stage would be made of another root than slurmd's, and what a step writes there
// would be the node's. No step gets a jail; one that wants none runs.
func TestSlurmdInAChroot(t *testing.T) {
	c := harness.Start(t, jailed)
	r := c.Root("sh", "-c", "mkdir /srv/root && mount --rbind --make-rprivate / /srv/root")
	require.Zero(t, r.Code, r)
	require.NoError(t, c.StopSlurmd("n1"))
	require.NoError(t, c.StartSlurmd("n1", "/usr/sbin/chroot", "/srv/root"))
	require.Equal(t, "idle", waitForState(c, "n1"))

	assert.Contains(t, c.Gojail("n1", "check").Stdout, "runs in the chroot /srv/root, where no step gets a jail")
	for _, step := range []string{"the first, which would make the sandbox", "the next"} {
		r = c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--output=/home/alice/out.%t", "touch", "/home/alice/ran")
		assert.NotZero(t, r.Code, "%s: %s", step, r)
		assert.Contains(t, r.String()+readFile(c, "/home/alice/out.0"), "slurmd is in a chroot", step)
		assert.Equal(t, "idle", waitForState(c, "n1"), c.Drained())
	}
	requireMissing(t, c, "/home/alice/ran")
	requireMissing(t, c, jailHome+"ran")
	r = c.Run(harness.Alice, "srun", "-wn1", "--jail=none", "touch", "/home/alice/ran")
	require.Zero(t, r.Code, "%s", r)
	require.FileExists(t, c.Path("/home/alice/ran"))
}
