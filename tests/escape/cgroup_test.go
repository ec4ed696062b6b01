// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestCgroups requires that a job cannot leave its cgroup and sees no other job's.
func TestCgroups(t *testing.T) {
	if why := harness.Missing(); why != "" {
		t.Skip(why)
	}
	s, err := newSite(harness.Options{Constrain: true})
	if s != nil {
		t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	}
	require.NoError(t, err)
	s.ShowLogs(t)
	control := s.runAttacks(t, rootOnNode, "cgroup-write")["cgroup-write"]
	assert.Equal(t, escaped, control.word, "control: root on the node: %s", control)
	for _, p := range []place{openUser, openRoot, closedUser, closedSelf, closedRoot} {
		t.Run(p.name, func(t *testing.T) {
			s.startVictims(t, p.jail)
			verdicts := s.runAttacks(t, p, "cgroup-write", "cgroup-see")
			t.Log(verdicts)
			assert.Equal(t, held, verdicts["cgroup-write"].word, verdicts)
			want := held
			if p.jail == "open" { // which has the node's tree, read-only
				want = escaped
			}
			assert.Equal(t, want, verdicts["cgroup-see"].word, verdicts)
		})
	}
	t.Run("outlive", func(t *testing.T) {
		t.Cleanup(func() { s.endLeftovers(t, "daemon") })
		r := s.runStep("closed", "daemon")
		require.Zero(t, r.Code, r)
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return s.countLeft("daemon") == 0 }), "it lives on: %s", r)
	})
}
