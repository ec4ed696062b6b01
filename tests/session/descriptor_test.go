// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// traceCalls runs a session of alice's on a terminal and returns what it prints, with a line "root: CALL of FD" for
// each system call that it makes on one of her descriptors with root's rights.
func (s *site) traceCalls(script string) string {
	r := s.Root("/harass", "calls", "5001", program, "-c", script)
	return r.Stdout + r.Stderr
}

// TestNothingIsDoneToTheCallersDescriptorsAsRoot requires that a session neither reads, writes nor controls what its
// caller's descriptors lead to, before it is the caller: what a call does may depend on the rights of the process,
// and a call may never return.
func TestNothingIsDoneToTheCallersDescriptorsAsRoot(t *testing.T) {
	s := sharedSite(t)
	s.installHarasser(t)
	const command = where + "; (echo the terminal is controlled >/dev/tty) && echo controls"
	t.Run("refused", func(t *testing.T) {
		assert.Regexp(t, `^(gojail: you have no job in a jail on this node.*\n|ended 1\n){2}$`, s.traceCalls(command))
	})
	s.startJob(t, harness.Alice, "--jail=debian")
	t.Run("in a job", func(t *testing.T) {
		assert.Equal(t, "debian\ncontrols\nended 0\n", s.traceCalls(command))
	})
	t.Run("on the node", func(t *testing.T) {
		require.NoError(t, s.WriteConfig(configuration+"[session]\nexempt = [\"alice\"]\n"))
		t.Cleanup(func() { require.NoError(t, s.WriteConfig(configuration)) })
		assert.Equal(t, "ON THE NODE\ncontrols\nended 0\n", s.traceCalls(command))
	})
	t.Run("at the deadline", func(t *testing.T) {
		s.witness(t)
		require.NoError(t, os.WriteFile(s.Path("/srv/witness/mode"), []byte("hang"), 0o644))
		t.Cleanup(func() { s.Root("rm", "-f", "/tmp/calls") })
		s.startInBackground(t, "root", "sh", "-c", "exec /harass calls 5001 "+program+" -c true >/tmp/calls 2>&1")
		session := ""
		require.True(t, harness.Poll(harness.Timeout, func() bool {
			saw, err := os.ReadFile(s.Path("/srv/witness/saw"))
			for _, p := range s.Find(program + " -c true") {
				if p.Status["Name"] == "gojail-session" && strings.HasPrefix(p.Status["Uid"], "0") {
					session = strconv.Itoa(p.Pid)
				}
			}
			return err == nil && strings.Contains(string(saw), "nice ") && session != ""
		}))
		require.Zero(t, s.Root("kill", "-ALRM", session).Code)
		printed := func() string { return s.Root("cat", "/tmp/calls").Stdout }
		require.True(t, harness.Poll(harness.Timeout, func() bool { return strings.Contains(printed(), "ended ") }), printed())
		assert.Contains(t, printed(), "the session was not ready before the deadline")
		assert.NotContains(t, printed(), "root: ")
	})
}

// TestLoginNodeUsesNoDescriptorAsRoot covers the first session on a login node, which has its sandbox built.
func TestLoginNodeUsesNoDescriptorAsRoot(t *testing.T) {
	s := sharedLoginNode(t, loginTable)
	s.installHarasser(t)
	assert.Equal(t, "debian\nended 0\n", s.traceCalls(where))
}
