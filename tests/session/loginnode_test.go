// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// loginTable is the table [login] in these tests: bob has another jail than all others.
const loginTable = `[login]
jail   = "debian"
nodes  = ["login[1-2]"]
linger = "2s"
[[login.rules]]
jail   = "other"
users  = ["bob"]
`

// sharedLoginNode returns the common site, whose sshd are those of the login node login1 for the rest of the test.
func sharedLoginNode(t *testing.T, table string) *site {
	t.Helper()
	s := sharedSite(t)
	const conf = "/etc/gojail/session.conf"
	require.Zero(t, s.Root("sh", "-ec", "cp "+conf+" /root/conf; sed -i s/^node=.*/node=login1/ "+conf).Code)
	require.NoError(t, s.WriteConfig(configuration+table))
	t.Cleanup(func() {
		// It ends after linger, or up to twice that.
		assert.True(t, harness.Poll(2*harness.Timeout, func() bool { return s.listLogins() == "" }), "a sandbox stays after the last session: %s", s.listLogins())
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("gojail-launcher login")) == 0 }), "%v", s.Find("gojail-launcher login"))
		require.Zero(t, s.Root("mv", "/root/conf", conf).Code)
		require.NoError(t, s.WriteConfig(configuration))
		s.Gojail("login1", "reload")
	})
	return s
}

// listLogins returns the names of the sandboxes of sessions in the state and the scratch directory.
func (s *site) listLogins() string {
	return strings.TrimSpace(s.Root("sh", "-c", "cd /run/gojail/login1/jobs 2>/dev/null && ls -d login-*; cd /var/lib/gojail/login1/jobs 2>/dev/null && ls -d login-*").Stdout)
}

// TestLoginNode requires that all sessions of a user share a sandbox of the jail that the site's rules name.
func TestLoginNode(t *testing.T) {
	s := sharedLoginNode(t, loginTable)
	for _, test := range []struct{ user, port, jail string }{{harness.Alice, shells, "debian"}, {harness.Alice, forced, "debian"}, {harness.Bob, forced, "other"}} {
		requireOutput(t, test.jail+" "+test.user+" /home/"+test.user, s.runSSH(test.user, "none", test.port, "echo $(cat /etc/gojail-jail) $(id -un) $(pwd)"))
	}
	requireOutput(t, "debian", s.Root("su", "-", "alice", "-c", "cat /etc/gojail-jail"))
	requireOutput(t, "debian", s.Do(harness.Command{User: "root", Stdin: "cat /etc/gojail-jail\n", Args: []string{"su", "-", "alice"}}))
	requireOutput(t, "debian", s.runSSH(harness.Alice, "77", forced, "cat /etc/gojail-jail"))

	t.Cleanup(func() {
		for _, p := range s.Find("sleep 7005") {
			s.Root("kill", strconv.Itoa(p.Pid)) // without a terminal, the end of ssh does not end it
		}
	})
	s.startInBackground(t, harness.Alice, formatSSHCommand(harness.Alice, "none", forced, "echo $$ >/tmp/first; cat /proc/self/cgroup >/tmp/cgroup; exec sleep 7005")...)
	requireOutput(t, "sleep 7005", s.runSSH(harness.Alice, "none", shells, "until [ -s /tmp/first -a -s /tmp/cgroup ]; do sleep 0.1; done; until grep -aq 7005 /proc/$(cat /tmp/first)/cmdline; do sleep 0.1; done; tr '\\0' ' ' </proc/$(cat /tmp/first)/cmdline"))
	requireOutput(t, "none", s.runSSH(harness.Bob, "none", forced, "ls /tmp | grep . || echo none"))
	assert.Equal(t, s.Root("cat", "/proc/self/cgroup").Stdout, s.runSSH(harness.Alice, "none", forced, "cat /tmp/cgroup").Stdout, "a session is in the cgroup that sshd has put it into")
	r := s.Gojail("login1", "ls")
	assert.Regexp(t, `(?m)^login-5001 +debian .* alice +1 +active`, r.Stdout, r)
	r = s.Gojail("login1", "sweep")
	assert.Contains(t, r.Stdout, "kept job login-5001: a session uses it\n", r)

	task := s.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "bash", "-c", rights)
	require.Zero(t, task.Code, task)
	inJob := strings.Join(regexp.MustCompile(`(?m)^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp).*$`).FindAllString(task.Stdout, -1), "\n")
	requireOutput(t, inJob, s.runSSH(harness.Alice, "none", shells, "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)' /proc/self/status"))
}

// TestZygoteOfALoginHasNoGroups requires that the zygote that a user's login starts, which serves all users, has none of that user's groups.
func TestZygoteOfALoginHasNoGroups(t *testing.T) {
	s := sharedLoginNode(t, loginTable)
	for _, p := range s.Find("gojail-launcher template state=/run/gojail/login1 ") {
		require.Zero(t, s.Root("kill", "-9", "--", strconv.Itoa(p.Pid)).Code)
	}
	const of = "grep -hE '^(Gid|Groups):' /proc/$(cut -d' ' -f2 /run/gojail/login1/"
	for process, record := range map[string]string{"zygote": "jails/debian/zygote", "holder": "jobs/login-5001/debian"} {
		var r harness.Result
		require.True(t, harness.Poll(harness.Timeout, func() bool { // the sandbox may end before it is looked at
			requireOutput(t, "debian", s.runSSH(harness.Alice, "none", forced, "cat /etc/gojail-jail"))
			r = s.Root("sh", "-c", of+record+")/status")
			return r.Code == 0
		}), "%s: %s", process, r)
		assert.Regexp(t, `^Gid:\t0\t0\t0\t0\nGroups:\s*\n$`, r.Stdout, "%s: %s", process, r)
	}
}

// TestSlurmOnALoginNode covers Slurm's commands in the login jail, with the same paths as in the job.
func TestSlurmOnALoginNode(t *testing.T) {
	s := sharedLoginNode(t, loginTable)
	ssh := func(command string) harness.Result { return s.runSSH(harness.Alice, "none", shells, command) }
	r := ssh("sinfo -h -o %n | sort -u; squeue -h")
	requireOutput(t, "n1\nn2", r)
	requireOutput(t, "debian /home/alice/work hello", ssh("mkdir -p work && cd work && echo hello >file && srun -Q -wn1 --jail=debian sh -c 'echo $(cat /etc/gojail-jail) $(pwd) $(cat file)'"))
	r = ssh(`cd work && printf '#!/bin/sh\ncat ../work/file\n' >script && sbatch -Q -W -wn1 --jail=debian --output=out script && cat out; cd; rm -r work`)
	assert.Zero(t, r.Code, r)
	assert.Contains(t, r.Stdout, "hello\n", r)
	r = s.Do(harness.Command{User: harness.Alice, Stdin: "echo in $(cat /etc/gojail-jail) $SLURM_JOB_ID\nsrun -Q --jail=debian cat /etc/gojail-jail\n",
		Args: formatSSHCommand(harness.Alice, "none", shells, "salloc -Q -wn1 bash")})
	assert.Regexp(t, `^in debian \d+\ndebian\n$`, r.Stdout, r)

	// munged is started again, with a new socket. A session that is there works again after the next one has begun.
	s.startInBackground(t, harness.Alice, formatSSHCommand(harness.Alice, "none", shells, "touch /tmp/waits; until [ -e /tmp/go ]; do sleep 0.1; done; squeue -h >/tmp/out 2>&1; echo $? >>/tmp/out; mv /tmp/out /tmp/done")...)
	requireOutput(t, "", ssh("until [ -e /tmp/waits ]; do sleep 0.1; done"))
	const socket = "/run/munge/munge.socket.2"
	require.Zero(t, s.Root("sh", "-ec", "cd /run/munge; mv "+socket+" old; perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un(shift))' "+socket).Code)
	restore := func() { s.Root("sh", "-c", "cd /run/munge; [ ! -e old ] || mv old "+socket+"") }
	t.Cleanup(restore)
	inode := func() string { return strings.TrimSpace(s.Root("stat", "-c%i", socket).Stdout) }
	requireOutput(t, inode(), ssh("stat -c%i "+socket))
	restore()
	requireOutput(t, inode(), ssh("stat -c%i "+socket))
	requireOutput(t, "", ssh("touch /tmp/go; until [ -e /tmp/done ]; do sleep 0.1; done"))
	requireOutput(t, "0", ssh("cat /tmp/done"))
}

// TestLoginSandboxEnds requires that /tmp and processes stay between sessions for a while, stay as long as a process is left, and are gone then.
func TestLoginSandboxEnds(t *testing.T) {
	const linger = 6 * time.Second
	s := sharedLoginNode(t, strings.Replace(loginTable, "2s", linger.String(), 1))
	ssh := func(command string) harness.Result { return s.runSSH(harness.Alice, "none", forced, command) }
	var said harness.Result
	require.True(t, harness.Poll(harness.Timeout, func() bool { // on a busy machine, the second session may begin too late
		requireOutput(t, "", ssh("echo kept >/tmp/file"))
		ended := time.Now()
		said = ssh("cat /tmp/file; setsid sleep 7006 </dev/null >/dev/null 2>&1 &")
		return time.Since(ended) < linger
	}))
	requireOutput(t, "kept", said)
	time.Sleep(linger * 3 / 2) // nothing must happen
	assert.Contains(t, s.listLogins(), "login-5001", "a process is left in it")
	r := s.Gojail("login1", "sweep")
	assert.Contains(t, r.Stdout, "kept job login-5001: ", r)
	requireOutput(t, "kept", ssh("cat /tmp/file; kill $(pidof sleep)"))
	require.True(t, harness.Poll(harness.Timeout, func() bool { return s.listLogins() == "" }), s.listLogins())
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("gojail-launcher login")) == 0 }), "%v", s.Find("gojail-launcher login"))
	requireOutput(t, "0", ssh("ls /tmp | wc -l"))

	// A session that begins and ends while the watcher pauses counts as well. On a busy machine, it may have begun too late.
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		requireOutput(t, "", ssh("echo kept >/tmp/file"))
		inTime := true
		for _, command := range []string{"true", "cat /tmp/file"} {
			ended := time.Now()
			time.Sleep(linger * 3 / 5) // twice is longer than linger
			said = ssh(command)
			inTime = inTime && time.Since(ended) < linger // else the sandbox may have ended rightly
		}
		return inTime
	}))
	requireOutput(t, "kept", said)

	// The watcher is killed: the next session has another, or a sweep ends the sandbox. What is left of before a boot goes with the next session.
	killWatchers := func() {
		watchers := s.Find("gojail-launcher login")
		require.NotEmpty(t, watchers)
		for _, p := range watchers {
			require.Zero(t, s.Root("kill", "-9", "--", strconv.Itoa(p.Pid)).Code)
		}
	}
	killWatchers()
	requireOutput(t, "", ssh("true"))
	require.True(t, harness.Poll(harness.Timeout, func() bool { return s.listLogins() == "" }), s.listLogins())
	requireOutput(t, "", ssh("true"))
	killWatchers()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return strings.Contains(s.Gojail("login1", "sweep").Stdout, "removed job login-5001\n") }))
	requireOutput(t, "", s.Root("sh", "-ec", "mkdir -p /var/lib/gojail/login1/jobs/login-5001/tmp/old; chown 5001 /var/lib/gojail/login1/jobs/login-5001"))
	requireOutput(t, "0", ssh("ls /tmp | wc -l"))
}

// TestLoginStaysInItsSandbox requires that a reload and a change of gojail.toml end no session, and that the next one shares its sandbox.
func TestLoginStaysInItsSandbox(t *testing.T) {
	table := strings.Replace(loginTable, "2s", "4s", 1)
	s := sharedLoginNode(t, table)
	t.Cleanup(func() {
		for _, p := range s.Find("sleep 7011") {
			s.Root("kill", strconv.Itoa(p.Pid)) // without a terminal, the end of ssh does not end it
		}
	})
	s.startInBackground(t, harness.Alice, formatSSHCommand(harness.Alice, "none", forced, "readlink /proc/self/ns/mnt >/tmp/mounts; exec sleep 7011")...)
	const same = "until grep -qsz '^7011$' /proc/[0-9]*/cmdline; do sleep 0.1; done; [ $(readlink /proc/self/ns/mnt) = $(cat /tmp/mounts) ] && pidof sleep | wc -w"
	requireOutput(t, "1", s.runSSH(harness.Alice, "none", shells, same))
	for _, config := range []string{configuration + table, strings.Replace(configuration, "[[jail.debian.user_mounts]]", "devices = [\"/dev/tty60\"]\n[[jail.debian.user_mounts]]", 1) + table} {
		require.NoError(t, s.WriteConfig(config))
		r := s.Gojail("login1", "reload")
		require.Zero(t, r.Code, r)
		requireOutput(t, "1", s.runSSH(harness.Alice, "none", shells, same))
	}
}

// TestSupplementaryGroups requires that the rules of login nodes and the exempt groups count for a supplementary group as well.
func TestSupplementaryGroups(t *testing.T) {
	s := sharedLoginNode(t, loginTable)
	require.Zero(t, s.Root("sh", "-ec", "groupadd -g 5100 ops; usermod -aG ops alice").Code)
	t.Cleanup(func() { s.Root("groupdel", "ops") })
	rules := configuration + strings.Replace(loginTable, `users  = ["bob"]`, `groups = ["ops"]`, 1)
	for config, place := range map[string]string{rules: "other", rules + "[session]\nexempt = [\"ops\"]\n": "ON THE NODE"} {
		require.NoError(t, s.WriteConfig(config))
		for _, port := range []string{forced, shells} {
			requireOutput(t, place, s.runSSH(harness.Alice, "none", port, where))
		}
		requireOutput(t, "debian", s.runSSH(harness.Bob, "none", forced, where))
	}
}

// TestBrokenInstallation requires one line, and no shell on the node, where a part of gojail is missing.
func TestBrokenInstallation(t *testing.T) {
	s := sharedLoginNode(t, loginTable)
	lib := filepath.Dir(program)
	for _, part := range []string{harness.ConfigPath, lib + "/gojail-launcher", "/srv/jails/debian"} {
		require.True(t, harness.Poll(harness.Timeout, func() bool { return s.listLogins() == "" }), s.listLogins())
		require.Zero(t, s.Root("mv", part, part+".away").Code)
		r := s.runAsAlice("$P -c \"$W\"")
		require.Zero(t, s.Root("mv", part+".away", part).Code)
		requireRefused(t, "", r)
		// What a storage has answered counts for a second.
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return s.runAsAlice("$P -c \"$W\"").Stdout == "debian\n" }), part)
	}
}

// TestLoginRefusals requires one line, and no shell on the node, for whatever is wrong.
func TestLoginRefusals(t *testing.T) {
	s := sharedLoginNode(t, loginTable)
	config := configuration + loginTable
	run := func(set string) harness.Result { return s.runAsAlice(set + " $P -c \"$W\"") }
	requireOutput(t, "other", run("SLURM_JAIL=other"))
	requireRefused(t, `there is no jail "none" on this node; choose one of: `, run("SLURM_JAIL=none"))
	requireRefused(t, `there is no jail "../debian" on this node`, run("SLURM_JAIL=../debian"))
	for why, text := range map[string]string{
		"you (uid 5001) may not use jail \"debian\"": strings.Replace(config, "[[jail.debian.user_mounts]]", "users = [\"bob\"]\n[[jail.debian.user_mounts]]", 1),
		"you have no job in a jail on this node":     strings.Replace(config, "login[1-2]", "login2", 1),
		"jail root /srv/none does not exist":         strings.Replace(config, "root = \"/srv/jails/debian\"\n[[", "root = \"/srv/none\"\n[[", 1),
		"/etc/gojail/gojail.toml: ":                  strings.Replace(config, "linger = ", "lingers = ", 1),
	} {
		require.NoError(t, s.WriteConfig(text))
		requireRefused(t, why, run(""))
	}
	require.NoError(t, s.WriteConfig(strings.Replace(config, "jail   = \"debian\"\n", "", 1)+"[session]\nwithout_job = \"node\"\n"))
	requireOutput(t, "ON THE NODE", run(""))
	require.NoError(t, s.WriteConfig(config+"[session]\nexempt = [\"alice\"]\n"))
	requireOutput(t, "ON THE NODE", run(""))
	require.NoError(t, s.WriteConfig(config))
	require.True(t, harness.Poll(harness.Timeout, func() bool { return s.listLogins() == "" }), "the sandbox of the first session ends: %s", s.listLogins())
	require.Zero(t, s.Root("sh", "-ec", "mkdir -p /run/gojail/login1/jobs/login-5001; echo 5002 >/run/gojail/login1/jobs/login-5001/.uid").Code)
	r := run("")
	require.Zero(t, s.Root("rm", "-r", "/run/gojail/login1/jobs/login-5001").Code)
	requireRefused(t, "a job of another user with the same id left its sandbox", r)
	requireOutput(t, "debian", run(""))
}

// TestLoginRuleOfAnUnknownGroup requires that nobody gets the node or a later rule's jail by a rule whose group cannot be looked up.
func TestLoginRuleOfAnUnknownGroup(t *testing.T) {
	s := sharedLoginNode(t, loginTable)
	const groups = "[[login.rules]]\njail = \"other\"\nusers = [\"nosuch\"]\ngroups = [\"lost\"]\n"
	rules := configuration + strings.Replace(loginTable, "jail   = \"debian\"\n", "", 1)
	for _, text := range []string{configuration + loginTable + groups, rules + groups + "[session]\nwithout_job = \"node\"\n"} {
		require.NoError(t, s.WriteConfig(text))
		requireRefused(t, `the group "lost" of login.rules cannot be looked up`, s.runAsAlice("$P -c \"$W\""))
		requireOutput(t, "other", s.runSSH(harness.Bob, "none", forced, "cat /etc/gojail-jail"))
	}
	require.NoError(t, s.WriteConfig(configuration+loginTable+strings.Replace(groups, "groups = [\"lost\"]\n", "", 1)))
	requireOutput(t, "debian", s.runAsAlice("$P -c \"$W\""))
	require.NoError(t, s.WriteConfig(rules+strings.Replace(groups, "groups = [\"lost\"]\n", "", 1)+"[session]\nwithout_job = \"node\"\n"))
	requireOutput(t, "ON THE NODE", s.runAsAlice("$P -c \"$W\""))
}

// TestLoginAfterABoot requires that nobody gets files of before a boot, however often their removal fails.
func TestLoginAfterABoot(t *testing.T) {
	s := sharedLoginNode(t, loginTable)
	const scratch = "/var/lib/gojail/login1/jobs/login-5001"
	requireOutput(t, "", s.Root("sh", "-ec", "mkdir -p "+scratch+"; mount -t tmpfs none "+scratch+"; mkdir "+scratch+"/tmp; echo 5001 >"+scratch+"/tmp/old; chown 5001 "+scratch))
	unmount := func() { s.Root("sh", "-c", "! mountpoint -q "+scratch+" || umount "+scratch) }
	t.Cleanup(unmount)
	for range 3 {
		r := s.runAsAlice("$P -c \"$W\"")
		requireRefused(t, "your earlier sandbox on this node cannot be removed: ", r)
		assert.Contains(t, r.Stderr, scratch)
	}
	unmount()
	requireOutput(t, "0", s.runSSH(harness.Alice, "none", forced, "ls /tmp | wc -l"))
}

// TestLoginAfterAnUpgrade requires that a sandbox of another version of gojail stays while it is used, and that none is built beside it.
func TestLoginAfterAnUpgrade(t *testing.T) {
	s := sharedLoginNode(t, strings.Replace(loginTable, "2s", "4s", 1))
	ssh := func(command string) harness.Result { return s.runSSH(harness.Alice, "none", forced, command) }
	makeForeign := func() {
		require.True(t, harness.Poll(harness.Timeout, func() bool { // that of the session before may have ended
			requireOutput(t, "", ssh("touch /tmp/file"))
			return s.Root("sed", "-i", "s/^[0-9]*/1/", "/run/gojail/login1/jobs/login-5001/debian").Code == 0
		}))
	}
	requireOutput(t, "", ssh("echo kept >/tmp/file; setsid sleep 7007 </dev/null >/dev/null 2>&1 &"))
	makeForeign()
	requireRefused(t, "processes of yours on this node are in a sandbox of another version of gojail", s.runAsAlice("$P -c \"$W\""))
	const blocked = "WARN  sessions: login-5001 is a sandbox of another version of gojail: while processes are in it, user 5001 cannot log in; run: loginctl terminate-user 5001"
	assert.Contains(t, s.listFindings("login1"), blocked)
	time.Sleep(6 * time.Second) // longer than linger
	sleep := s.Find("sleep 7007")
	require.Len(t, sleep, 1, "the watcher has ended what is in use")
	requireOutput(t, "kept", s.Root("cat", "/var/lib/gojail/login1/jobs/login-5001/tmp/file"))
	requireRefused(t, "processes of yours on this node are in a sandbox of another version of gojail", s.runAsAlice("SLURM_JAIL=other $P -c \"$W\""))
	require.Zero(t, s.Root("kill", strconv.Itoa(sleep[0].Pid)).Code)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("sleep 7007")) == 0 }))
	requireOutput(t, "0", ssh("ls /tmp | wc -l"))
	assert.NotContains(t, s.listFindings("login1"), "another version")
	makeForeign()
	requireOutput(t, "0", ssh("ls /tmp | wc -l"))
}

// TestLoginSessionsWhileTheSandboxEnds starts sessions at every moment of the end of the sandbox, and many at once.
func TestLoginSessionsWhileTheSandboxEnds(t *testing.T) {
	s := sharedLoginNode(t, strings.Replace(loginTable, "2s", "1s", 1))
	requireOutput(t, "debian", s.runAsAlice("$P -c \"$W\""))
	stop := time.Now().Add(8 * time.Second)
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			for pause := 900; time.Now().Before(stop); pause += 37 {
				r := s.runAsAlice("sleep " + strconv.Itoa(pause/1000) + "." + strconv.Itoa(1000 + pause%1000)[1:] + "; $P -c \"$W\"")
				assert.Equal(t, "debian\n", r.Stdout, r)
			}
		})
		wait.Go(func() {
			r := s.runAsAlice("for i in $(seq 20); do $P -c \"$W\" & done; wait")
			assert.Equal(t, strings.Repeat("debian\n", 20), r.Stdout, r)
		})
	}
	wait.Wait()
	_, err := os.Stat(s.Path("/run/gojail/login1"))
	assert.NoError(t, err)
}
