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

// TestNameServiceIsAskedAsTheUser requires that no module of the node's name service is loaded into a process that has
// root's rights, or can get them again, and that no answer of it does harm.
func TestNameServiceIsAskedAsTheUser(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	s.witness(t)
	requireOutput(t, "debian", s.runAsAlice("$P -c \"$W\""))
	text, err := os.ReadFile(s.Path("/srv/witness/saw"))
	require.NoError(t, err)
	rights := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "uid ") {
			rights++
			assert.Equal(t, "uid 5001 5001 5001 gid 5001 5001 5001 caps 0 dumpable 0 new_privs 0 root 0\n", line)
		}
	}
	assert.Equal(t, 1, rights, "%s", text)

	for mode, refusal := range map[string]string{
		"uid":    "the account of another uid",
		"name":   "control character",
		"noname": "it has no name",
		"home":   "control character",
		"shell":  "control character",
		"long":   "is too long",
		"end":    "the lookup was ended",
	} {
		require.NoError(t, os.WriteFile(s.Path("/srv/witness/mode"), []byte(mode), 0o644))
		r := s.runAsAlice("$P -c \"$W\"")
		requireRefused(t, "cannot find the account of user 5001 on this node: ", r)
		assert.Contains(t, r.Stderr, refusal, mode)
		assert.Equal(t, 1, strings.Count(r.Stderr, "\n"), "%s: %q", mode, r.Stderr)
	}
	require.NoError(t, os.Remove(s.Path("/srv/witness/mode")))
	requireOutput(t, "debian", s.runAsAlice("$P -c \"$W\""))
}

// TestNameServiceThatHangs requires that a module which never returns hangs in a process of the user's, which the user
// can end, and that root's process ends with it, or at its deadline.
func TestNameServiceThatHangs(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	s.witness(t)
	require.NoError(t, os.WriteFile(s.Path("/srv/witness/mode"), []byte("hang"), 0o644))
	for _, end := range []struct{ whose, by, signal, want string }{
		{"0", "root", "-ALRM", "a name service or a file system of the node may hang"}, // the deadline
		{"5001", harness.Alice, "-KILL", "the lookup was ended"},
	} {
		require.Zero(t, s.Root("sh", "-c", "rm -f /tmp/late; : >/srv/witness/saw").Code)
		s.startInBackground(t, harness.Alice, "sh", "-c", "exec "+program+" -c true >/tmp/late 2>&1")
		processes := map[string]string{} // by uid
		require.True(t, harness.Poll(harness.Timeout, func() bool {
			saw, err := os.ReadFile(s.Path("/srv/witness/saw"))
			for _, p := range s.Find(program) {
				uid, _, _ := strings.Cut(p.Status["Uid"], "\t")
				processes[uid] = strconv.Itoa(p.Pid)
			}
			return err == nil && strings.Contains(string(saw), "nice ") && len(processes) == 2
		}), "%v", s.Find(program))
		require.Zero(t, s.Run(end.by, "kill", end.signal, processes[end.whose]).Code, "%v", processes)
		require.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find(program)) == 0 }), "%v", s.Find(program))
		assert.Contains(t, s.Root("cat", "/tmp/late").Stdout, end.want)
	}
	require.Zero(t, s.Root("rm", "-f", "/tmp/late").Code)
}
