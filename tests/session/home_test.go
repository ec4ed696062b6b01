// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestSessionWithHomeThatIsALink connects by ssh where the user's home in the jail is a symbolic link. The session
// starts where it leads in the jail, and what a program writes there is in the jail or is the job's own; else a line
// says where it starts.
func TestSessionWithHomeThatIsALink(t *testing.T) {
	s := sharedSite(t)
	const root = "/srv/jails/other"
	require.Zero(t, s.Root("sh", "-euc", "cd "+root+"; mv home/alice home/alice.real; mkdir -p data; cp -a home/alice.real data/alice").Code)
	t.Cleanup(func() {
		require.Zero(t, s.Root("sh", "-euc", "cd "+root+"; rm -rf home/alice data/alice; mv home/alice.real home/alice").Code)
	})
	const missing = "gojail: the home directory /home/alice cannot be entered: No such file or directory; starting in /\n"
	for _, row := range []struct{ link, cwd, file, said string }{
		{"alice.real", "/home/alice.real", root + "/home/alice.real/s.gojail", ""},
		{"/data/alice", "/data/alice", root + "/data/alice/s.gojail", ""},
		{"../../../../data/alice", "/data/alice", root + "/data/alice/s.gojail", ""},
		{"/tmp", "/tmp", "", ""},
		{"/nosuch", "/", "", missing},
	} {
		require.Zero(t, s.Root("sh", "-euc", "cd "+root+"; rm -f home/alice; ln -s "+row.link+" home/alice").Code)
		job := s.startJob(t, harness.Alice, "--jail=other", "--chdir=/tmp")
		for _, port := range []string{shells, forced} {
			r := s.runSSH(harness.Alice, "none", port, "pwd -P; echo written 2>/dev/null >$HOME/s.gojail")
			assert.Equal(t, row.cwd+"\n", r.Stdout, "%s: %s", row.link, r)
			assert.Equal(t, row.said, r.Stderr, row.link)
			found := s.Root("find", "/tmp/", "/home/", root, "-xdev", "-name", "s.gojail")
			assert.Equal(t, row.file, found.Stdout[:max(0, len(found.Stdout)-1)], row.link)
			s.Root("find", root, "-xdev", "-name", "s.gojail", "-delete")
		}
		s.endJob(t, job)
	}
}
