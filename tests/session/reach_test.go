// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestAgentIsSSHDs requires that a session reaches the agent that sshd forwards, and no other socket of the user's on the node,
// such as that of a systemd, which starts any program for its clients. PAM may let users choose SSH_AUTH_SOCK (pam_env's user_readenv).
func TestAgentIsSSHDs(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	s.startInBackground(t, harness.Alice, "perl", "-MIO::Socket::UNIX", "-e", `$s = IO::Socket::UNIX->new(Local => "/tmp/alices", Listen => 9); open F, ">", "/tmp/told"; F->autoflush;
		while ($c = $s->accept) { print F "accepted\n"; print F "told $got\n" if sysread $c, $got, 1 }`)
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Stat(s.Path("/tmp/told")); return err == nil }))
	t.Cleanup(func() { s.Root("rm", "-f", "/tmp/alices", "/tmp/told", "/home/alice/.pam_environment") })
	told := func() string {
		text, err := os.ReadFile(s.Path("/tmp/told"))
		require.NoError(t, err)
		return string(text)
	}
	const ask = "echo $SSH_AUTH_SOCK; ssh-add -l 2>&1 | tail -1"
	assert.Regexp(t, "^/tmp/ssh-", s.runAsAlice("SSH_AUTH_SOCK=/tmp/alices $P -c '"+ask+"'").Stdout)
	assert.NotContains(t, told(), "told", "by hand")
	require.Zero(t, s.Run(harness.Alice, "sh", "-c", "echo SSH_AUTH_SOCK=/tmp/alices >~/.pam_environment").Code)
	for _, port := range []string{forced, shells} {
		r := s.runSSH(harness.Alice, "none", port, ask)
		assert.Zero(t, r.Code, r)
		assert.NotContains(t, told(), "told", r)
	}
}

// witness makes the node's name service record the state of gojail-session at its calls, two lines each. saw returns
// the last line.
func (s *site) witness(t *testing.T) (saw func() string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(s.Path("/srv/witness"), 0o755))
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", s.Path("/srv/witness/libnss_witness.so.2"), "testdata/witness.c").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Zero(t, s.Root("sh", "-ec", "cp /etc/nsswitch.conf /srv/witness; cp /etc/ld.so.cache /srv/witness; sed -i 's/^passwd:/passwd: witness/' /etc/nsswitch.conf; "+
		"ldconfig -C /etc/ld.so.cache /srv/witness").Code)
	t.Cleanup(func() {
		require.Zero(t, s.Root("sh", "-ec", "cp /srv/witness/nsswitch.conf /etc; cp /srv/witness/ld.so.cache /etc; rm -r /srv/witness").Code)
	})
	require.NoError(t, os.WriteFile(s.Path("/srv/witness/saw"), nil, 0o666))
	require.NoError(t, os.Chmod(s.Path("/srv/witness/saw"), 0o666)) // the user's process writes it
	return func() string {
		text, err := os.ReadFile(s.Path("/srv/witness/saw"))
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return lines[len(lines)-1] // the lines before are of other programs
	}
}

// TestPriorityOfTheCaller requires that the part with root's rights, for which others may wait, does not have the caller's priority,
// and that the session has it.
func TestPriorityOfTheCaller(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	saw := s.witness(t)
	const own = "echo $(nice) $(ionice) $(taskset -p $$ | sed s/.*:.//) $(chrt -p $$ | head -1 | sed s/.*:.//)"
	before := strings.TrimSpace(s.runAsAlice("nice -n 5 nice").Stdout) // whatever priority the tests have
	want := s.runAsAlice("taskset 1 chrt -i 0 nice -n 19 ionice -c 3 bash -c '" + own + "'").Stdout
	require.Equal(t, "19 idle 1 SCHED_IDLE\n", want)
	assert.Equal(t, want, s.runAsAlice("taskset 1 chrt -i 0 nice -n 19 ionice -c 3 $P -c '"+own+"'").Stdout)
	assert.Equal(t, fmt.Sprintf("nice 0 policy 0 cpus %d io 0 slack 50000 umask 022", countCPUs()), saw())
	slack := s.runAsAlice("perl -e 'syscall 157, 29, 7_000_000_000; exec @ARGV' $P -c 'cat /proc/self/timerslack_ns'")
	requireOutput(t, "7000000000", slack)
	assert.Contains(t, saw(), " slack 50000 ")
	r := s.runAsAlice("nice -n 5 $P -c nice; chrt -b 0 $P -c 'chrt -p $$ | head -1'")
	assert.Regexp(t, "^"+before+"\n.*SCHED_BATCH\n$", r.Stdout, r)
}

// TestDescriptorsOfNameServices requires that the session does not inherit descriptors of the node's name services.
func TestDescriptorsOfNameServices(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	saw := s.witness(t)
	requireOutput(t, "0 1 2 3", s.runAsAlice("$P -c 'echo $(ls /proc/self/fd)'"))
	assert.NotEmpty(t, saw(), "the witness was asked")
}

// TestSilentStorage requires that a session is refused if its storage does not answer, and that it does not delay others.
func TestSilentStorage(t *testing.T) {
	if _, err := exec.LookPath("bindfs"); err != nil {
		t.Skip("needs bindfs: make deps")
	}
	s := sharedSite(t)
	require.Zero(t, s.Root("sh", "-ec", "mkdir -p /srv/fuse; bindfs /srv/jails/debian /srv/fuse").Code)
	found := s.Find("bindfs /srv/jails")
	require.Len(t, found, 1)
	daemon := fmt.Sprint(found[0].Pid)
	t.Cleanup(func() {
		s.Root("sh", "-c", "kill -CONT "+daemon+"; umount -l /srv/fuse; kill "+daemon)
		require.NoError(t, s.WriteConfig(configuration))
		require.Zero(t, s.Gojail("n1", "reload").Code)
	})
	require.NoError(t, s.WriteConfig(configuration+"\n[jail.fuse]\nroot = \"/srv/fuse\"\n"))
	s.startJob(t, harness.Alice, "--jail=fuse")
	s.startJob(t, harness.Bob, "--jail=debian")
	requireOutput(t, "debian", s.runSSH(harness.Alice, "none", shells, where))
	require.Zero(t, s.Root("kill", "-STOP", daemon).Code)
	time.Sleep(1100 * time.Millisecond) // the last answer counts until then
	requireRefused(t, `jail "fuse" (root /srv/fuse): the storage /srv/jails/debian (fuse`, s.runSSH(harness.Alice, "none", shells, where))
	requireOutput(t, "debian", s.runSSH(harness.Bob, "none", forced, where))
	require.Zero(t, s.Root("kill", "-CONT", daemon).Code)
	requireOutput(t, "debian", s.runSSH(harness.Alice, "none", shells, where))
}

// TestFrozenCaller requires that a user who stops a session at any moment, for instance by a cgroup of the user's, does not delay
// steps of others, also if the session is the first process to find the configuration changed.
func TestFrozenCaller(t *testing.T) {
	s := sharedSite(t)
	setup := strings.ReplaceAll("if [ -e /sys/fs/cgroup/cgroup.procs ]; then g=/sys/fs/cgroup/callers f=$g/cgroup.freeze on=1 off=0; "+
		"elif [ -e /sys/fs/cgroup/unified/cgroup.procs ]; then g=/sys/fs/cgroup/unified/callers f=$g/cgroup.freeze on=1 off=0; "+
		"else g=/sys/fs/cgroup/freezer/callers f=$g/freezer.state on=FROZEN off=THAWED; fi; ", "callers", fmt.Sprint("gojail-callers-", s.Pid))
	if r := s.Root("sh", "-ec", setup+"mkdir $g; echo $off >$f"); r.Code != 0 {
		t.Skip("needs a cgroup that can be frozen: ", r)
	}
	t.Cleanup(func() {
		require.NoError(t, s.WriteConfig(configuration))
		require.Zero(t, s.Root("sh", "-ec", setup+"rmdir $g").Code)
	})
	s.startJob(t, harness.Alice, "--jail=debian")
	session := fmt.Sprintf("(echo 0 >$g/cgroup.procs; exec setpriv --reuid=5001 --regid=5001 --clear-groups %s -c true) </dev/null >/dev/null 2>&1 & ", program)
	change := func(number int) { require.NoError(t, s.WriteConfig(fmt.Sprintf("%s\n# %d\n", configuration, number))) }
	const moments = 25
	change(moments)
	whole := s.Root("sh", "-ec", setup+session+"wait") // as long as it takes here now: the moments are spread over it
	require.Zero(t, whole.Code, whole)
	for moment := range moments {
		change(moment)
		after := max(whole.Duration, 100*time.Millisecond).Seconds() * float64(moment) / moments
		require.Zero(t, s.Root("sh", "-ec", setup+session+fmt.Sprintf("sleep %.3f; echo $on >$f", after)).Code)
		requireOutput(t, "debian", s.Run(harness.Bob, "srun", "-Q", "-wn1", "--jail=debian", "cat", "/etc/gojail-jail"))
		require.Zero(t, s.Root("sh", "-ec", setup+"echo $off >$f").Code)
		require.True(t, harness.Poll(harness.Timeout, func() bool { return s.Root("sh", "-ec", setup+"[ -z \"$(cat $g/cgroup.procs)\" ]").Code == 0 }))
	}
}
