// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kill ends a service's main process by SIGKILL. What does not start again by itself is started.
func (g *guest) kill(t *testing.T, unit string) {
	t.Helper()
	r := g.run("", "systemctl kill -s KILL --kill-whom=main "+unit)
	require.Zero(t, r.Code, r)
	if unit == "slurmdbd" {
		r = g.run("", "systemctl start slurmdbd")
		require.Zero(t, r.Code, r)
	}
	require.True(t, poll(6*time.Minute, func() bool {
		return g.run("", "systemctl is-active "+unit).Stdout == "active\n"
	}), "%v", g.run("", "systemctl status "+unit))
}

// TestDaemonsKilled: a step in a jail goes on, and its job with a further one, whichever daemon is killed under it.
func TestDaemonsKilled(t *testing.T) {
	s := sharedSite(t)
	before := s.inventory()
	for _, test := range []struct {
		unit string
		on   *guest
	}{{"slurmd", s.n1}, {"slurmctld", s.head}, {"slurmdbd", s.head}} {
		t.Run(test.unit, func(t *testing.T) {
			j := s.submitJob(t, "n1")
			j.waitSaved(t)
			test.on.kill(t, test.unit)
			requireOutput(t, s.runInJail("n1", "cat "+marker), "debian")
			j.requireGoesOn(t)
			s.assertNothingLeft(t, before)
		})
	}
	// A job has the socket of munged that existed when it began, or slurmd (gojail.toml.example): its running step goes on,
	// further jobs have the new one.
	t.Run("munge", func(t *testing.T) {
		step := s.head.start("alice", "srun -Q -w n1 sh -c 'touch begun-munge; until [ -e go-munge ]; do sleep 1; done; cat "+marker+"'")
		require.True(t, poll(6*time.Minute, func() bool { return s.head.run("alice", "test -e begun-munge").Code == 0 }))
		s.n1.kill(t, "munge")
		requireOutput(t, s.runInJail("n1", "cat "+marker), "debian")
		require.Zero(t, s.head.run("alice", "touch go-munge").Code)
		requireOutput(t, result{Reply: <-step}, "debian")
		s.submitJob(t, "n1").requireGoesOn(t)
		s.assertNothingLeft(t, before)
	})
}
