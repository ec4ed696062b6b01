// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTakeover: the backup slurmctld takes over and the first takes back, while a step runs and new ones start.
func TestTakeover(t *testing.T) {
	s := sharedSite(t)
	before := s.inventory()
	j := s.submitJob(t, "n1")
	j.waitSaved(t)
	r := s.head.run("", "systemctl kill -s KILL --kill-whom=main slurmctld; systemctl stop slurmctld")
	require.Zero(t, r.Code, r)
	// A client that finds the first one silent asks the second, which refuses until it has taken over.
	assert.True(t, poll(10*time.Minute, func() bool {
		return s.head.run("", "timeout 60 scontrol ping | grep -q 'head is DOWN' && timeout 60 squeue -h -j "+j.id).Code == 0
	}), "%v", s.n2.run("", "scontrol ping; journalctl -n 40 --no-pager -u slurmctld"))
	requireOutput(t, s.runInJail("n[1-2]", "cat "+marker), "debian", "debian")
	second := s.submitJob(t, "n2")
	second.requireGoesOn(t)

	r = s.head.run("", "systemctl start slurmctld")
	require.Zero(t, r.Code, r)
	assert.True(t, poll(10*time.Minute, func() bool {
		return s.head.run("", "timeout 60 scontrol ping | grep -q 'head is UP' && timeout 60 squeue -h -j "+j.id).Code == 0
	}), "%v", s.head.run("", "scontrol ping; journalctl -n 40 --no-pager -u slurmctld"))
	requireOutput(t, s.runInJail("n[1-2]", "cat "+marker), "debian", "debian")
	j.requireGoesOn(t)
	s.assertNothingLeft(t, before)
}
