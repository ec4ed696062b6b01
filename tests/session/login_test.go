// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestSessionCountsAsTheUsers requires that the audit login uid, utmp and wtmp are those of a session without gojail: sshd and PAM set
// them. On port shells, alice's session is in the jail, and bob's is on the node.
func TestSessionCountsAsTheUsers(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	hasAudit := s.Root("test", "-e", "/proc/self/loginuid").Code == 0
	require.Zero(t, s.Root("sh", "-ec", "touch /run/utmp /var/log/wtmp; grep -q pam_loginuid /etc/pam.d/sshd").Code)
	t.Cleanup(func() { s.Root("rm", "-f", "/run/utmp", "/var/log/wtmp") })
	const script = "echo in the $(cat /etc/gojail-jail 2>/dev/null || echo node) as $(cat /proc/self/loginuid) on $(readlink /proc/$$/fd/0); sleep 1000"
	seen := map[string]string{}
	for user, want := range map[string]struct{ where, uid string }{harness.Alice: {"debian", "5001"}, harness.Bob: {"node", "5002"}} {
		log := "/tmp/session-of-" + user
		ssh := strings.Join(append(listSSHArguments("ssh", shells), "-tt", user+"@127.0.0.1", "'"+script+"'"), " ")
		s.startInBackground(t, user, "sh", "-c", "exec "+ssh+" </dev/null >"+log)
		t.Cleanup(func() { s.Root("rm", "-f", log) })
		line := regexp.MustCompile(`in the ` + want.where + ` as (\d+) on /dev/(pts/\d+)`)
		var found []string
		require.True(t, harness.Poll(harness.Timeout, func() bool {
			text, _ := os.ReadFile(s.Path(log))
			found = line.FindStringSubmatch(string(text))
			return found != nil
		}), user)
		if hasAudit {
			assert.Equal(t, want.uid, found[1], "the login uid of %s", user)
		}
		r := s.Root("sh", "-c", "who /run/utmp; who /var/log/wtmp")
		require.Zero(t, r.Code, r)
		for line := range strings.Lines(r.Stdout) {
			if fields := strings.Fields(line); fields[0] == user && fields[1] == found[2] {
				seen[user] += " " + fields[len(fields)-1]
			}
		}
	}
	t.Log("utmp and wtmp have:", seen)
	assert.Equal(t, seen[harness.Bob], seen[harness.Alice], "utmp and wtmp of a session on the node and of one in the jail")
}

// TestSessionIsHungUp requires that a session on a terminal gets SIGHUP when its client goes away, as without a jail.
func TestSessionIsHungUp(t *testing.T) {
	s := sharedSite(t)
	job := s.startJob(t, harness.Alice, "--jail=debian")
	for _, port := range []string{forced, shells} {
		tmp := s.Path("/var/lib/gojail/n1/jobs/"+job+"/tmp") + "/"
		const script = "trap 'echo hung up >/tmp/hup; exit' HUP; touch /tmp/waits; while :; do sleep 0.1; done"
		args := append(formatSSHCommand(harness.Alice, "none", port), "-tt", script)
		client := s.startInBackground(t, harness.Alice, args...)
		exists := func(name string) func() bool {
			return func() bool { _, err := os.Stat(tmp + name); return err == nil }
		}
		require.True(t, harness.Poll(harness.Timeout, exists("waits")))
		require.NoError(t, client.Cancel())
		assert.True(t, harness.Poll(harness.Timeout, exists("hup")), "port %s: no SIGHUP", port)
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("gojail-session")) == 0 }), "%v", s.Find("gojail-session"))
		requireOutput(t, "hung up", s.runSSH(harness.Alice, job, port, "cat /tmp/hup; rm /tmp/hup /tmp/waits"))
	}
}

// TestSessionHasTheClientsLocaleAndWindow covers LANG and LC_*, which Debian's sshd accepts, and the size of the window, at the start
// and when it changes.
func TestSessionHasTheClientsLocaleAndWindow(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	for _, port := range []string{forced, shells} {
		ssh := strings.Join(append(listSSHArguments("ssh", port), "-oSetEnv='LANG=C.UTF-8 LC_TIME=C'"), " ")
		requireOutput(t, "C.UTF-8 C", s.Run(harness.Alice, "sh", "-c", ssh+` 127.0.0.1 'echo $LANG $LC_TIME'`))
		const inside = `trap "stty size; exit" WINCH; stty size; while :; do sleep 0.1; done`
		seen := "/tmp/window-" + port // begins with the command, which the pattern must not match
		r := s.Run(harness.Alice, "script", "-qefc", "stty rows 33 cols 77; (until grep -q '33[ ]77' "+seen+"; do sleep 0.1; done; stty rows 50 cols 90 </dev/tty) & "+
			ssh+" -t 127.0.0.1 '"+inside+"'", seen)
		assert.Regexp(t, `33 77\r\n(.*\r\n)?50 90\r\n`, r.Stdout, r)
	}
}

// TestFullProcessTable requires one line, and no shell, where no process can be started: in a cgroup of the caller's, and by its limit.
func TestFullProcessTable(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	setup := strings.ReplaceAll("if [ -e /sys/fs/cgroup/cgroup.procs ]; then r=/sys/fs/cgroup; else r=/sys/fs/cgroup/pids; fi; g=$r/callers; ", "callers", fmt.Sprint("gojail-full-", s.Pid))
	if r := s.Root("sh", "-ec", setup+"mkdir $g; cat $g/pids.max"); r.Code != 0 {
		t.Skip("needs a cgroup with pids.max: ", r)
	}
	t.Cleanup(func() { require.Zero(t, s.Root("sh", "-ec", setup+"rmdir $g").Code) })
	in := func(most int) harness.Result {
		return s.Root("sh", "-ec", setup+fmt.Sprintf("echo %d >$g/pids.max; echo 0 >$g/cgroup.procs; exec setpriv --reuid=5001 --regid=5001 --clear-groups %s -c '%s'", most, program, where))
	}
	requireRefused(t, "cannot start the session: cannot create a process: ", in(1))
	requireOutput(t, "debian", in(10))
	r := s.runAsAlice("ulimit -u 1; exec $P -c \"$W\"")
	assert.NotContains(t, r.Stdout, "NODE", r)
}
