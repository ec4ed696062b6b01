// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reboot has the machine reboot itself, and waits for its agent.
func (g *guest) reboot(t *testing.T) {
	t.Helper()
	wait := g.waitBoot(bootTime)
	begin := time.Now()
	g.start("", "systemctl reboot")
	require.NoError(t, wait())
	t.Logf("%s: up again after %.0f s", g.machine.Name, time.Since(begin).Seconds())
}

// requireWholeNode wants the node as after its installation: VFs, GRES and jails have come back by themselves.
func (s *site) requireWholeNode(t *testing.T, g *guest) {
	t.Helper()
	s.requireIdle(t)
	r := g.run("", "systemctl --failed --no-legend --plain")
	assert.Empty(t, r.Stdout, "%v", r)
	r = s.head.run("alice", fmt.Sprintf("srun -Q -w %s --gres=nic:rail0:1 --jail-net=ai sh -c 'cat %s; ls /sys/class/net | grep -c ^net'", g.machine.Name, marker))
	requireOutput(t, r, "debian", "1")
}

// jobsTold counts the jobs of which the metrics of the node tell.
const jobsTold = "grep -c '^gojail_job_info{' /var/lib/gojail-metrics/node-exporter/gojail-$(hostname).prom"

// TestRebootOfANode: idle, and with a job in a jail and on a VF.
func TestRebootOfANode(t *testing.T) {
	s := sharedSite(t)
	s.requireWholeNode(t, s.n1)
	before := s.inventory()
	t.Run("idle", func(t *testing.T) {
		s.n1.reboot(t)
		s.requireWholeNode(t, s.n1)
		s.assertNothingLeft(t, before)
	})
	t.Run("busy", func(t *testing.T) {
		j := s.submitJob(t, "n1", "--no-requeue", "--gres=nic:rail0:1", "--jail-net=ai")
		tells := func(jobs string) func() bool {
			return func() bool { return s.n1.run("", jobsTold).Stdout == jobs+"\n" }
		}
		require.True(t, poll(6*time.Minute, tells("1")), "the timer of the metrics")
		s.n1.reboot(t)
		assert.NotEqual(t, "COMPLETED", j.waitEnd())
		assert.True(t, poll(6*time.Minute, tells("0")), "the metrics tell of no job of before")
		s.requireWholeNode(t, s.n1)
		s.assertNothingLeft(t, before)
	})
}
