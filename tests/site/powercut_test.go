// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// powerCut cuts the power of a machine and waits until it has booted again.
func (g *guest) powerCut(t *testing.T, meanwhile func()) {
	t.Helper()
	require.NoError(t, g.cutPower())
	meanwhile()
	wait := g.waitBoot(bootTime)
	require.NoError(t, g.switchOn())
	require.NoError(t, wait())
}

// TestPowerCutOfANode: Slurm notices, the job of before does not run on, and the node comes back without anybody's help.
func TestPowerCutOfANode(t *testing.T) {
	s := sharedSite(t)
	s.requireWholeNode(t, s.n1)
	before := s.inventory()
	j := s.submitJob(t, "n1", "--no-requeue", "--gres=nic:rail0:1", "--jail-net=ai")
	s.n1.powerCut(t, func() {
		assert.Equal(t, "NODE_FAIL", j.waitEnd())
		requireOutput(t, s.runInJail("n2", "cat "+marker), "debian")
	})
	s.requireWholeNode(t, s.n1)
	s.assertNothingLeft(t, before)
}

// TestPowerCutOfTheHead: slurmctld, slurmdbd and the server of the jail go away at once. The job on a node waits for its
// storage and goes on when that is back, with a further step, and nodes need nobody's help.
func TestPowerCutOfTheHead(t *testing.T) {
	s := sharedSite(t)
	before := s.inventory()
	j := s.submitJob(t, "n1")
	j.waitSaved(t)
	s.head.powerCut(t, func() {
		assert.Contains(t, s.n1.run("", "timeout 60 gojail ls").Stdout, j.id)
	})
	// The second slurmctld may have had control for a moment. A step that is asked for meanwhile is Slurm's own affair.
	require.True(t, poll(15*time.Minute, func() bool {
		return s.head.run("", "timeout 60 scontrol ping | grep -q 'head is UP'").Code == 0 && s.listNodes() == "n1 mixed n2 idle\n"
	}), "%v", j.describe())
	j.requireGoesOn(t)
	requireOutput(t, s.runInJail("n[1-2]", "cat "+marker), "debian", "debian")
	s.assertNothingLeft(t, before)
	for _, g := range s.guests() {
		assert.Empty(t, g.run("", "systemctl --failed --no-legend --plain").Stdout)
	}
}
