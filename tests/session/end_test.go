// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestTheEndOfTheJobEndsSessions also in a jail without a PID namespace, and of a command that ignores a hangup.
func TestTheEndOfTheJobEndsSessions(t *testing.T) {
	s := sharedSite(t)
	for _, jail := range []string{"lax", "debian"} {
		job := s.startJob(t, harness.Alice, "--jail="+jail)
		var ends []func() error
		for _, command := range []string{"exec sleep 7021", "trap '' HUP; sleep 7021; sleep 7021", "exec sleep 7021"} {
			ends = append(ends, s.startInBackground(t, harness.Alice, formatSSHCommand(harness.Alice, job, shells, command)...).Wait)
		}
		require.True(t, harness.Poll(harness.Timeout, func() bool { return s.countSleeps() == len(ends) }), "%v", s.Find("sleep 7021"))
		s.endJob(t, job)
		for _, end := range ends {
			assert.Error(t, end(), jail)
		}
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return s.countSleeps() == 0 }), "%s: %v", jail, s.Find("sleep 7021"))
	}
}

// countSleeps counts the processes that the sessions of this test execute.
func (s *site) countSleeps() (count int) {
	for _, p := range s.Find("sleep 7021") {
		if p.Command == "sleep 7021" {
			count++
		}
	}
	return count
}
