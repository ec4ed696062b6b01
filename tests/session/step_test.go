// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// stopAt starts a session of alice's and stops it with SIGSTOP at a system call. resume lets it go on and returns what it printed. It
// reports whether the session made so many calls.
func (s *site) stopAt(t *testing.T, call int) (resume func() string, stopped bool) {
	t.Helper()
	log := fmt.Sprintf("/tmp/stopped-at-%d", call) // appended to: cat(1) of coreutils 9 copies to an offset that it read before (copy_file_range(2))
	t.Cleanup(func() { s.Root("rm", "-f", log) })
	s.startInBackground(t, "root", "sh", "-c", fmt.Sprintf("exec /harass step %d 5001 %s -c '%s' >>%s 2>&1", call, program, where, log))
	read := func() string {
		text, _ := os.ReadFile(s.Path(log))
		return string(text)
	}
	var pid []string
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		pid = regexp.MustCompile(`(?m)^stopped (\d+)$`).FindStringSubmatch(read())
		return pid != nil || strings.Contains(read(), "ended ")
	}), read())
	if pid == nil {
		return nil, false
	}
	return func() string {
		require.Zero(t, s.Root("kill", "-CONT", pid[1]).Code)
		require.True(t, harness.Poll(harness.Timeout, func() bool { return strings.Contains(read(), "ended ") }), read())
		return strings.Replace(read(), pid[0]+"\n", "", 1) // behind what the program in the jail printed, if that was faster
	}, true
}

// stepBetween is how many stops lie between two of the moments at which a session is stopped.
const stepBetween = 41

// TestSessionStoppedAtEachStep stops a session at moments from its first system call to its last. Meanwhile the job ends, and another user's step
// starts. Then the session is refused, or has been in the sandbox before.
func TestSessionStoppedAtEachStep(t *testing.T) {
	s := sharedSite(t)
	s.installHarasser(t)
	refused := 0
	for call := 1; ; call += stepBetween {
		job := s.startJob(t, harness.Alice, "--jail=debian")
		resume, stopped := s.stopAt(t, call)
		s.endJob(t, job)
		if !stopped {
			break
		}
		requireOutput(t, "debian", s.Run(harness.Bob, "srun", "-Q", "-wn1", "--jail=debian", "cat", "/etc/gojail-jail"))
		text := resume()
		assert.Regexp(t, `^(gojail: .*\nended 1|debian\nended 0|ended (137|0|1))\n$`, text, "stop %d", call)
		if strings.Contains(text, "ended 1\n") {
			refused++
		}
	}
	assert.Greater(t, refused, 3, "the job ended before the session was in it")
}

// TestLoginSessionStoppedAtEachStep stops a session on a login node for longer than its sandbox stays unused.
func TestLoginSessionStoppedAtEachStep(t *testing.T) {
	s := sharedLoginNode(t, strings.Replace(loginTable, "2s", "1s", 1))
	s.installHarasser(t)
	for call := 1; ; call += stepBetween {
		requireOutput(t, "debian", s.runAsAlice("$P -c \"$W\""))
		resume, stopped := s.stopAt(t, call)
		if !stopped {
			break
		}
		time.Sleep(2500 * time.Millisecond) // longer than linger
		requireOutput(t, "other", s.runSSH(harness.Bob, "none", forced, where))
		assert.Equal(t, "debian\nended 0\n", resume(), "stop %d", call)
	}
}

// TestLoginOfALimitedCaller requires that what the first session starts, and all others use, does not have that session's limits, priority or
// personality.
func TestLoginOfALimitedCaller(t *testing.T) {
	s := sharedLoginNode(t, loginTable)
	for _, limit := range []string{"ulimit -n 3", "ulimit -f 0", "ulimit -u 0", "ulimit -v 5000", "ulimit -s 100", "ulimit -l 0; ulimit -i 0; ulimit -q 0", "exec <&- >&- 2>&-", "exec setarch --uname-2.6 -R"} {
		require.True(t, harness.Poll(harness.Timeout, func() bool { return s.listLogins() == "" }), s.listLogins())
		s.Gojail("login1", "reload")
		script := limit + "; exec $P -c \"$W\""
		if strings.HasPrefix(limit, "exec setarch") {
			script = limit + " $P -c \"$W\""
		}
		r := s.runAsAlice(script)
		assert.Contains(t, []string{"debian\n", ""}, r.Stdout, "%s: %v", limit, r)
		requireOutput(t, "other", s.runSSH(harness.Bob, "none", forced, where))
		requireOutput(t, "debian", s.runAsAlice("$P -c \"$W\""))
		personalities := ""
		for _, p := range s.Find("state=/run/gojail/login1") {
			personalities += s.Root("cat", fmt.Sprintf("/proc/%d/personality", p.Pid)).Stdout
		}
		assert.Regexp(t, `^(00000000\n)+$`, personalities, limit)
	}
}

// TestSessionEndsWithItsChildAtTheDeadline requires that nothing executes the user's shell after the session has ended at its deadline: here, the child
// waits in a write to a pipe that is full.
func TestSessionEndsWithItsChildAtTheDeadline(t *testing.T) {
	s := sharedSite(t)
	require.NoError(t, s.WriteConfig(strings.Replace(configuration, (5*time.Second*harness.Slow).String(), "5m", 1)))
	const home = "/srv/jails/debian/home/alice"
	require.Zero(t, s.Root("sh", "-ec", "mkfifo -m 666 /tmp/full; chmod 000 "+home).Code)
	t.Cleanup(func() {
		s.Root("sh", "-c", "rm -f /tmp/full /tmp/late; chmod 755 "+home)
		require.NoError(t, s.WriteConfig(configuration))
	})
	s.startJob(t, harness.Alice, "--jail=debian", "--chdir=/tmp")
	const drain = "dd if=/tmp/full of=/dev/null bs=65536 count=1"
	s.startInBackground(t, harness.Alice, "bash", "-c", "exec 7<>/tmp/full; dd if=/dev/zero of=/tmp/full bs=4096 count=16; "+program+" -c '"+where+"' >/tmp/late 2>&7; "+drain)
	session := ""
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		all := s.Find(program) // the script, the session, and its child, which is the user's by now
		for _, p := range all {
			if strings.HasPrefix(p.Status["Uid"], "0") && len(all) == 3 {
				session = strconv.Itoa(p.Pid)
			}
		}
		return session != ""
	}), "%v", s.Find(program))
	require.Zero(t, s.Root("kill", "-ALRM", session).Code)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find(program)) == 0 }), "%v", s.Find(program))
	assert.Empty(t, s.Root("cat", "/tmp/late").Stdout, "the shell was executed")
}
