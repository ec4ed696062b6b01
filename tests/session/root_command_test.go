// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// whereRuns prints where a command runs, as which user, in which directory, and the name of its shell.
const whereRuns = `echo $(cat /etc/gojail-jail 2>/dev/null || echo NODE) $(id -un) $(pwd) $HOME $0`

// rootCommands are ways in which scripts of the administrator's run a command as alice, and what they print while alice has a job on the node, and
// while not; "refused" is a session's refusal.
var rootCommands = []struct {
	name, user    string
	command       []string
	stdin         string
	with, without string
}{
	{"su - -c", "root", []string{"su", "-", "alice", "-c", whereRuns}, "", "NODE alice /home/alice /home/alice sh", "the same"},
	{"su -c", "root", []string{"su", "alice", "-c", whereRuns}, "", "NODE alice /home/alice /home/alice sh", "the same"},
	{"runuser - -c", "root", []string{"runuser", "-", "alice", "-c", whereRuns}, "", "NODE alice /home/alice /home/alice sh", "the same"},
	{"runuser -l -c", "root", []string{"runuser", "-l", "alice", "-c", whereRuns}, "", "NODE alice /home/alice /home/alice sh", "the same"},
	{"su -s", "root", []string{"su", "-s", "/bin/sh", "alice", "-c", whereRuns}, "", "NODE alice / /home/alice sh", "the same"},
	{"runuser -u", "root", []string{"runuser", "-u", "alice", "--", "sh", "-c", "echo $(id -un); cat /etc/gojail-jail 2>/dev/null || echo NODE"}, "", "alice\nNODE", "the same"},
	{"a shell without a command", "root", []string{"su", "-", "alice"}, whereRuns + "\n", "debian alice /home/alice /home/alice -bash", "refused"},
	{"another program of root's", "root", []string{"setpriv", "--reuid=alice", "--regid=alice", "--init-groups", program, "-c", whereRuns}, "",
		"debian alice /home/alice /home/alice bash", "refused"},
	{"alice herself", harness.Alice, []string{program, "-c", whereRuns}, "", "debian alice /home/alice /home/alice bash", "refused"},
	{"su by bob", harness.Bob, []string{"su", "-", "alice", "-c", whereRuns}, password + "\n", "debian alice /home/alice /home/alice bash", "refused"},
}

// TestCommandsOfRoot: a command that root runs as a user by su or runuser, in a Prolog for example, is on the node and not in a job of the user's,
// and nothing that the user has written in the home directory runs there. Sessions are in the job.
func TestCommandsOfRoot(t *testing.T) {
	s := sharedSite(t)
	for _, file := range []string{".profile", ".bash_profile", ".bashrc"} {
		path := s.Path("/home/alice/" + file)
		require.NoError(t, os.WriteFile(path, []byte("echo start-up file of alice\n"), 0o644))
		t.Cleanup(func() { os.Remove(path) })
	}
	require.Zero(t, s.Root("sh", "-c", "echo alice:"+password+" | chpasswd").Code)
	t.Cleanup(func() { s.Root("usermod", "-p", "*", "alice") })
	check := func(withJob bool) {
		for _, test := range rootCommands {
			r := s.Do(harness.Command{User: test.user, Stdin: test.stdin, Dir: "/", Args: test.command})
			want := test.with
			if !withJob && test.without != "the same" {
				assert.NotZero(t, r.Code, "%s: %s", test.name, r)
				assert.Contains(t, r.Stderr, "gojail: you have no job in a jail on this node", test.name)
				continue
			}
			assert.Equal(t, want+"\n", r.Stdout, "job: %v, %s: %s", withJob, test.name, r)
		}
	}
	check(false)
	s.startJob(t, harness.Alice, "--jail=debian")
	check(true)
}
