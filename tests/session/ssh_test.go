// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

var requireOutput = harness.RequireOutput

// requireRefused requires that nothing ran, and that the reason is all that there is to read.
func requireRefused(t *testing.T, why string, r harness.Result) {
	t.Helper()
	harness.RequireRefused(t, "gojail: "+why, r)
	assert.Equal(t, 1, r.Code, r)
	assert.Empty(t, r.Stdout, r)
	assert.NotContains(t, strings.TrimSpace(r.Stderr), "\n", r)
}

// TestSessionIsInTheSandboxOfTheJob covers gojail-session as the login shell and as the ForceCommand.
func TestSessionIsInTheSandboxOfTheJob(t *testing.T) {
	s := sharedSite(t)
	for _, test := range []struct{ user, port string }{{harness.Alice, shells}, {harness.Alice, forced}, {harness.Bob, forced}} {
		job := s.startJob(t, test.user, "--jail=debian")
		ssh := func(command string) harness.Result { return s.runSSH(test.user, "none", test.port, command) }
		requireOutput(t, "debian", ssh("cat /etc/gojail-jail"))
		requireOutput(t, "hello", ssh("cat /tmp/of-$SLURM_JOB_ID"))
		requireOutput(t, test.user+" "+job+" /home/"+test.user, ssh("echo $(id -un) $SLURM_JOB_ID $(pwd)"))
		task := s.Run(test.user, "srun", "--jobid="+job, "--overlap", "-Q", "--jail=debian", "bash", "-c", rights)
		require.Zero(t, task.Code, task)
		requireOutput(t, withoutInheritedSignals(t, strings.TrimSpace(task.Stdout)), ssh(rights))
		s.endJob(t, job)
		requireRefused(t, "you have no job in a jail on this node", ssh("true"))
	}
}

// rights is a script that prints the namespaces, capabilities and other rights of a process.
const rights = "for n in mnt pid ipc uts net user; do readlink /proc/self/ns/$n; done; grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|SigBlk|SigIgn)' /proc/self/status; ls -l /proc/self/fd | wc -l"

// withoutInheritedSignals returns what rights printed, without the ignored signals that slurmd inherited from this process and no task
// resets: those of nohup(1), for instance, and signals 32 and 33, which posix_spawn(3), by which make starts these tests, ignores in
// its child. gojail-session resets all.
func withoutInheritedSignals(t *testing.T, text string) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, own := cutIgnored(t, string(status))
	before, ignored := cutIgnored(t, text)
	_, rest, _ := strings.Cut(text[len(before):], "\n")
	return fmt.Sprintf("%s%016x\n%s", before, ignored&^own, rest)
}

// cutIgnored returns the ignored signals in a text from /proc/PID/status, and the text before them.
func cutIgnored(t *testing.T, text string) (before string, mask uint64) {
	t.Helper()
	const name = "SigIgn:\t"
	at := strings.Index(text, name)
	require.GreaterOrEqual(t, at, 0, text)
	before = text[:at+len(name)]
	line, _, _ := strings.Cut(text[len(before):], "\n")
	mask, err := strconv.ParseUint(line, 16, 64)
	require.NoError(t, err)
	return before, mask
}

// TestSessionReachesTheJobsProcesses requires that a user looks into and ends tasks of the job from a session, as a debugger must.
func TestSessionReachesTheJobsProcesses(t *testing.T) {
	s := sharedSite(t)
	job := s.startJob(t, harness.Alice, "--jail=debian")
	requireOutput(t, "SLURM_JOB_ID="+job, s.runSSH(harness.Alice, "none", shells, `tr '\0' '\n' </proc/$(pidof sleep)/environ | grep ^SLURM_JOB_ID=`))
	requireOutput(t, "", s.runSSH(harness.Alice, "none", shells, "kill $(pidof sleep)"))
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return s.JobFields(job)["JobState"] != "RUNNING" }), s.JobFields(job))
}

// TestSessionChoosesAJob requires the newest job, or the one that SLURM_JOB_ID names, and never another user's.
func TestSessionChoosesAJob(t *testing.T) {
	s := sharedSite(t)
	first := s.startJob(t, harness.Alice, "--jail=debian")
	second := s.startJob(t, harness.Alice, "--jail=other")
	bobs := s.startJob(t, harness.Bob, "--jail=debian")
	requireOutput(t, second+" other", s.runSSH(harness.Alice, "none", shells, "echo $SLURM_JOB_ID $(cat /etc/gojail-jail)"))
	for job, jail := range map[string]string{first: "debian", second: "other"} {
		requireOutput(t, job+" "+jail, s.runSSH(harness.Alice, job, shells, "echo $SLURM_JOB_ID $(cat /etc/gojail-jail)"))
	}
	for _, job := range []string{bobs, "999999", "0" + first} {
		requireRefused(t, "SLURM_JOB_ID: job "+job+" has no sandbox of yours on this node", s.runSSH(harness.Alice, job, shells, "true"))
	}
	for _, job := range []string{"../" + bobs, bobs + "/", "run-1", "99999999999", "", " "} {
		requireRefused(t, "SLURM_JOB_ID: ", s.runSSH(harness.Alice, job, shells, "true"))
	}
	s.endJob(t, second)
	requireOutput(t, first, s.runSSH(harness.Alice, "none", shells, "echo $SLURM_JOB_ID"))
}

// TestSessionsOverOneConnection requires what docs/users.md says of a connection that ssh shares (ControlMaster of ssh_config(5)): the first
// command's SendEnv decides which variables later sessions may set, and -S none makes a connection of its own.
func TestSessionsOverOneConnection(t *testing.T) {
	s := sharedSite(t)
	first := s.startJob(t, harness.Alice, "--jail=debian")
	second := s.startJob(t, harness.Alice, "--jail=debian")
	for send, want := range map[string]string{"LANG": second, "SLURM_JOB_ID SLURM_JAIL": first} {
		base := append(listSSHArguments("ssh", shells), "-oControlPath=/tmp/mux-"+strconv.Itoa(len(send)), "-oSendEnv="+send)
		ssh := func(args ...string) harness.Result {
			return s.Do(harness.Command{User: harness.Alice, Args: append(append(slices.Clone(base), args...), "alice@127.0.0.1", "echo $SLURM_JOB_ID")})
		}
		s.startInBackground(t, harness.Alice, append(slices.Clone(base), "-oControlMaster=yes", "-N", "alice@127.0.0.1")...)
		require.True(t, harness.Poll(harness.Timeout, func() bool { return ssh("-O", "check").Code == 0 }))
		requireOutput(t, second, ssh())
		requireOutput(t, want, ssh("-oSetEnv=SLURM_JOB_ID="+first))
		requireOutput(t, first, ssh("-S", "none", "-oSetEnv=SLURM_JOB_ID="+first))
	}
}

// TestSessionWithoutAJob requires what the site configures, and the node for exempt groups.
func TestSessionWithoutAJob(t *testing.T) {
	s := sharedSite(t)
	t.Cleanup(func() { require.NoError(t, s.WriteConfig(configuration)) })
	onNode := "[ -e /etc/gojail-jail ] || echo $(id -u) $0 on the node"
	for _, test := range []struct{ user, port string }{{harness.Alice, shells}, {harness.Bob, forced}} {
		require.NoError(t, s.WriteConfig("[session]\nwithout_job = \"node\"\n"+configuration))
		require.NoError(t, s.WriteConfig(strings.Replace(configuration, "[slurm]", "[session]\nwithout_job = \"node\"\n[slurm]", 1)))
		requireOutput(t, map[string]string{"alice": "5001", "bob": "5002"}[test.user]+" bash on the node", s.runSSH(test.user, "none", test.port, onNode))
		requireRefused(t, "SLURM_JOB_ID: job 999999 has no sandbox of yours", s.runSSH(test.user, "999999", test.port, onNode))
		require.NoError(t, s.WriteConfig(configuration))
		requireRefused(t, "you have no job in a jail on this node", s.runSSH(test.user, "none", test.port, onNode))
	}
	s.startJob(t, harness.Alice, "--jail=debian")
	require.NoError(t, s.WriteConfig(strings.Replace(configuration, "[slurm]", "[session]\nexempt = [\"alice\"]\n[slurm]", 1)))
	requireOutput(t, "5001 bash on the node", s.runSSH(harness.Alice, "none", shells, onNode))
	requireRefused(t, "you have no job in a jail on this node", s.runSSH(harness.Bob, "none", forced, onNode))
	require.NoError(t, s.WriteConfig(configuration))
	requireOutput(t, "", s.runSSH(harness.Alice, "none", shells, onNode))
	requireOutput(t, "0 bash on the node", s.runSSH("root", "none", forced, onNode))
}

// TestSessionEndsLikeItsCommand covers exit codes and signals, as ssh reports them.
func TestSessionEndsLikeItsCommand(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	for _, port := range []string{forced, shells} {
		for command, want := range map[string]int{"true": 0, "exit 7": 7, "exit 255": 255, "kill -TERM $$": 255, "kill -KILL $$": 255, "no-such-command": 127} {
			r := s.runSSH(harness.Alice, "none", port, command)
			assert.Equal(t, want, r.Code, "%s: %v", command, r)
		}
		r := s.Do(harness.Command{User: harness.Alice, Stdin: "from the client", Args: formatSSHCommand(harness.Alice, "none", port, "cat; echo error >&2")})
		assert.Equal(t, "from the client|error\n|0", r.Stdout+"|"+r.Stderr+"|"+string(rune('0'+r.Code)), r)
	}
}

// TestSessionHasATerminal requires a login shell on its own terminal, with job control.
func TestSessionHasATerminal(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	for _, port := range []string{forced, shells} {
		args := append(listSSHArguments("ssh", port), "-tt", "alice@127.0.0.1")
		r := s.Do(harness.Command{User: harness.Alice, Env: []string{"TERM=vt100"}, Args: args,
			Stdin: "PS1=; stty -echo\necho \"[$0 $TERM $SSH_TTY $-]\"; echo \"to the terminal\" >/dev/tty; cat /etc/gojail-jail; sleep 50 & kill %1; fg; trap 'echo interrupted' INT; kill -INT $$; exit 5\n"})
		assert.Equal(t, 5, r.Code, r)
		assert.Regexp(t, `\[-bash vt100 /dev/pts/\d+ \w*i\w*m\w*\]\r\nto the terminal\r\n`, r.Stdout, r)
		assert.Contains(t, r.Stdout, "debian\r\n", r)
		assert.Contains(t, r.Stdout, "interrupted", r)
		assert.NotContains(t, r.Stdout, "no job control", r)
	}
}

// TestFilesAreTheJobs requires that scp, sftp and rsync read and write the files of the job's sandbox.
func TestFilesAreTheJobs(t *testing.T) {
	s := sharedSite(t)
	job := s.startJob(t, harness.Alice, "--jail=debian")
	require.Zero(t, s.Run(harness.Alice, "sh", "-c", "echo text >/home/alice/file").Code)
	for _, port := range []string{forced, shells} {
		ssh := strings.Join(listSSHArguments("ssh", port), " ")
		for name, args := range map[string][]string{
			"scp":   append(listSSHArguments("scp", port), "file", "127.0.0.1:/tmp/scp"),
			"scp-O": append(listSSHArguments("scp", port), "-O", "file", "127.0.0.1:/tmp/scp-O"),
			"rsync": {"rsync", "-e", ssh, "file", "127.0.0.1:/tmp/rsync"},
			"sftp":  {"sh", "-c", "echo put file /tmp/sftp | " + strings.Join(listSSHArguments("sftp", port), " ") + " -b - 127.0.0.1"},
		} {
			r := s.Run(harness.Alice, args...)
			assert.Zero(t, r.Code, "%s: %v", name, r)
			requireOutput(t, "text alice", s.runSSH(harness.Alice, job, port, "echo $(cat /tmp/"+name+") $(stat -c %U /tmp/"+name+"); rm /tmp/"+name))
			r = s.Run(harness.Alice, "test", "-e", "/tmp/"+name)
			assert.NotZero(t, r.Code, "%s wrote on the node", name)
		}
	}
}

// TestPortsAreForwarded covers both directions, for a job in the node's network namespace.
func TestPortsAreForwarded(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	for port, to := range map[string]string{shells: "400", forced: "401"} {
		s.startInBackground(t, harness.Alice, append(listSSHArguments("ssh", port), "-L"+to+"1:127.0.0.1:"+shells, "-R"+to+"2:127.0.0.1:"+shells, "alice@127.0.0.1", "sleep 1000")...)
		require.True(t, harness.Poll(harness.Timeout, func() bool {
			return strings.HasPrefix(s.Run(harness.Alice, "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+to+"1; head -c4 <&3").Stdout, "SSH-")
		}))
		requireOutput(t, "SSH-", s.runSSH(harness.Alice, "none", shells, "bash -c 'exec 3<>/dev/tcp/127.0.0.1/"+to+"2; head -c4 <&3'"))
	}
}

// TestAgentIsForwarded requires that ssh-add and ssh in the jail use the client's agent, and that no socket of it remains.
func TestAgentIsForwarded(t *testing.T) {
	s := sharedSite(t)
	job := s.startJob(t, harness.Alice, "--jail=debian")
	const agent = "eval $(ssh-agent) >/dev/null; ssh-add -q ~/.ssh/id_ed25519; "
	for _, port := range []string{forced, shells} {
		ssh := strings.Join(listSSHArguments("ssh", port), " ")
		for range 2 {
			r := s.Run(harness.Alice, "bash", "-c", agent+ssh+" -A 127.0.0.1 'ssh-add -l & ssh-add -l; wait; echo $SSH_AUTH_SOCK; stat -c %U:%a ${SSH_AUTH_SOCK%/*}'; kill $SSH_AGENT_PID")
			assert.Regexp(t, `^(256 SHA256:.*\n){2}/tmp/ssh-\w{10}/agent\nalice:700\n$`, r.Stdout, r)
		}
		r := s.Run(harness.Alice, "bash", "-c", agent+ssh+" -A 127.0.0.1 '"+ssh+" 127.0.0.1 cat /etc/gojail-jail'; kill $SSH_AGENT_PID")
		requireOutput(t, "debian", r)
		requireOutput(t, "", s.runSSH(harness.Alice, job, port, "ls -d /tmp/ssh-* 2>/dev/null; true"))
		requireOutput(t, "", s.runSSH(harness.Alice, job, port, "echo $SSH_AUTH_SOCK"))
	}
	// Another user's socket, or a file, is not forwarded.
	s.startInBackground(t, "root", "perl", "-MIO::Socket::UNIX", "-e", `umask 0; $s = IO::Socket::UNIX->new(Local => "/tmp/roots", Listen => 1); sleep 1000`)
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Stat(s.Path("/tmp/roots")); return err == nil }))
	for _, path := range []string{"/tmp/roots", "/etc/passwd", "/nothing", ""} {
		r := s.runAsAlice("SSH_AUTH_SOCK=" + path + " $P -c 'ssh-add -l 2>&1'")
		assert.Regexp(t, "^Error connecting to agent: Connection refused|^error fetching identities: communication with agent failed|^Could not open a connection", r.Stdout, "%s: %v", path, r)
	}
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("gojail-session")) == 0 }), "%v", s.Find("gojail-session"))
}

// TestBackgroundOutlivesTheConnection requires that a server that a session leaves behind ends with the job, and not earlier.
func TestBackgroundOutlivesTheConnection(t *testing.T) {
	s := sharedSite(t)
	job := s.startJob(t, harness.Alice, "--jail=debian")
	requireOutput(t, "", s.runSSH(harness.Alice, "none", shells, "setsid sleep 7001 </dev/null >/dev/null 2>&1 &"))
	const count = "cat /proc/[0-9]*/comm | grep -c sleep" // setsid(1) may not have executed it yet
	require.True(t, harness.Poll(harness.Timeout, func() bool { return s.runSSH(harness.Alice, "none", shells, count).Stdout == "2\n" }))
	require.Len(t, s.Find("sleep 7001"), 1)
	require.NoError(t, s.RestartSlurmd("n1"))
	require.Zero(t, s.Gojail("n1", "reload").Code)
	require.Len(t, s.Find("sleep 7001"), 1, "a restart and a reload end nothing")
	s.endJob(t, job)
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("sleep 7001")) == 0 }), "%v", s.Find("sleep 7001"))
}

// TestJobEndsItsSessions requires that ssh ends with the job, and that no process remains on the node.
func TestJobEndsItsSessions(t *testing.T) {
	s := sharedSite(t)
	job := s.startJob(t, harness.Alice, "--jail=debian")
	cmd := s.startInBackground(t, harness.Alice, formatSSHCommand(harness.Alice, "none", shells, "sleep 7002")...)
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		for _, p := range s.Find("sleep 7002") {
			if strings.HasPrefix(p.Command, "sleep") {
				return true
			}
		}
		return false
	}))
	// The process that waits has nothing of root's, perhaps a moment after the command has begun, and the descriptors of the session, one for
	// signals, and one that tells the end of the job.
	var waiting []string
	assert.True(t, harness.Poll(harness.Timeout, func() bool {
		waiting = nil
		for _, p := range s.Find("gojail-session") {
			if strings.HasPrefix(p.Command, "gojail-session") {
				fds, _ := os.ReadDir(s.Path(fmt.Sprintf("/proc/%d/fd", p.Pid)))
				waiting = append(waiting, fmt.Sprint(p.Status["Uid"], " ", p.Status["CapPrm"], " ", p.Status["NoNewPrivs"], " ", len(fds)))
			}
		}
		return slices.Equal(waiting, []string{"5001\t5001\t5001\t5001 0000000000000000 1 5"})
	}), "%q", waiting)
	session := s.Find("sleep 7002")
	require.NoError(t, s.RestartSlurmd("n1"))
	require.Zero(t, s.Gojail("n1", "reload").Code)
	assert.Equal(t, len(session), len(s.Find("sleep 7002")), "a restart and a reload end no session")
	s.endJob(t, job)
	err := cmd.Wait()
	require.Error(t, err)
	assert.Equal(t, 255, cmd.ProcessState.ExitCode())
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("gojail-session")) == 0 }), "%v", s.Find("gojail-session"))
}
