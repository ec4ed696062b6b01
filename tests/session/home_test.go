// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"strings"
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
	const missing = "gojail: the home directory /home/alice cannot be entered as user alice: No such file or directory; starting in /\n"
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

// TestSessionWithHomeThatIsExchanged exchanges the user's home in the jail while a session is there. The session stays in its directory, and its
// $HOME is what a next session starts in, where the jail has one: as on any machine. No file of either is elsewhere.
func TestSessionWithHomeThatIsExchanged(t *testing.T) {
	s := sharedSite(t)
	const root = "/srv/jails/other"
	require.Zero(t, s.Root("sh", "-euc", "cd "+root+"; mv home/alice home/alice.real; mkdir -p data; cp -a home/alice.real data/alice").Code)
	t.Cleanup(func() {
		require.Zero(t, s.Root("sh", "-euc", "cd "+root+"; rm -rf home/alice home/moved data/alice; mv home/alice.real home/alice").Code)
	})
	const missing = "gojail: the home directory /home/alice cannot be entered as user alice: No such file or directory; starting in /\n"
	for _, row := range []struct{ name, before, exchange, old, next, said string }{
		{"link", "ln -s alice.real home/alice", "ln -s /data/alice home/new; mv -T home/new home/alice", "/home/alice.real", "/data/alice", ""},
		{"link that is gone", "ln -s alice.real home/alice", "rm home/alice", "/home/alice.real", "/", missing},
		{"link to nothing", "ln -s /data/alice home/alice", "ln -sfn /nosuch home/alice", "/data/alice", "/", missing},
		{"directory", "cp -a home/alice.real home/alice", "mv home/alice home/moved; cp -a home/alice.real home/alice", "/home/moved", "/home/alice", ""},
		{"directory to link", "cp -a home/alice.real home/alice", "mv home/alice home/moved; ln -s /data/alice home/alice", "/home/moved", "/data/alice", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Zero(t, s.Root("sh", "-euc", "cd "+root+"; rm -rf home/alice home/moved; "+row.before).Code)
			job := s.startJob(t, harness.Alice, "--jail=other", "--chdir=/tmp")
			t.Cleanup(func() { s.endJob(t, job) })
			ended := make(chan harness.Result, 1)
			go func() {
				ended <- s.runSSH(harness.Alice, "none", shells, "touch begun; until [ -e begun.go ]; do sleep 0.05; done; echo early >early.gojail; /bin/pwd -P")
			}()
			before := map[string]string{"/home/moved": "/home/alice"}[row.old]
			if before == "" {
				before = row.old
			}
			require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Stat(s.Path(root + before + "/begun")); return err == nil }))
			require.Zero(t, s.Root("sh", "-euc", "cd "+root+"; "+row.exchange+"; touch ."+row.old+"/begun.go").Code)
			early := <-ended
			assert.Equal(t, row.old+"\n", early.Stdout, early)
			next := s.runSSH(harness.Alice, "none", shells, "pwd -P; echo next 2>/dev/null >$HOME/next.gojail")
			assert.Equal(t, row.next+"\n", next.Stdout, next)
			assert.Equal(t, row.said, next.Stderr)
			want := root + row.old + "/early.gojail\n"
			if row.said == "" {
				want += root + row.next + "/next.gojail\n"
			}
			found := s.Root("find", "/tmp/", "/home/", root, "-xdev", "-name", "*.gojail")
			assert.ElementsMatch(t, strings.Fields(want), strings.Fields(found.Stdout))
			s.Root("find", root, "-xdev", "(", "-name", "*.gojail", "-o", "-name", "begun*", ")", "-delete")
		})
	}
}
