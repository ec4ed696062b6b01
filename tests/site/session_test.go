// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/site/wire"
)

// loginConf is the table of gojail.toml on the head.
const loginConf = `[login]
jail   = "debian"
nodes  = ["head"]
linger = "5s"
`

// sshToHead runs a command on the head as alice, from n2. Its root has the key.
const sshToHead = "ssh -i /root/key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR alice@head "

// makeLoginNode is docs/sessions.md, Set up a login node, on the head, until the test ends.
func (s *site) makeLoginNode(t *testing.T) {
	t.Helper()
	key := s.n2.run("", "[ -e /root/key ] || ssh-keygen -q -t ed25519 -N '' -f /root/key; cat /root/key.pub")
	require.Zero(t, key.Code, key)
	require.Zero(t, s.head.run("alice", "mkdir -p -m 700 .ssh; cat >.ssh/authorized_keys <<'EOF'\n"+key.Stdout+"EOF\nrm -f in-* leave-*").Code)
	t.Cleanup(func() {
		requireAll(t, s.onlyHead(), "rm -f /etc/nologin /etc/gojail/gojail.toml; usermod -s /bin/bash alice; cp -a /root/sshd_config /etc/ssh/; systemctl stop ssh; rm -rf /home/alice/.ssh; "+
			"rm -f /etc/gojail/session.conf /etc/cron.allow /etc/at.allow; systemctl unmask user@.service")
	})
	node, compute := readProcedure(t, "sessions.md", "Set up a login node"), readProcedure(t, "sessions.md", "Set up a compute node")
	requireAll(t, s.onlyHead(), "cp -a /etc/ssh/sshd_config /root/; systemctl start ssh")
	node.requireSays(t, 1, "steps 1 to 3, 5, 6 and 9 above")
	compute.requireSays(t, 2, "usermod -s /usr/lib/gojail/gojail-session USER")
	requireAll(t, s.onlyHead(), "usermod -s /usr/lib/gojail/gojail-session alice")
	compute.requireSays(t, 3, "`sshd -t && systemctl reload ssh`")
	requireAll(t, s.onlyHead(), "cat >>/etc/ssh/sshd_config <<'EOF'\n"+compute.readBlocks(t, 3)[0]+"EOF\nsshd -t && systemctl reload ssh")
	compute.requireSays(t, 5, "Remove `user_readenv=1` from `/etc/pam.d/sshd`")
	requireAll(t, s.onlyHead(), "sed -i s/user_readenv=1// /etc/pam.d/sshd")
	requireAll(t, s.onlyHead(), compute.readBlocks(t, 6)[0])
	node.requireSays(t, 2, "[login]")
	requireAll(t, s.onlyHead(), write("/etc/gojail/gojail.toml", jailConf+loginConf))
	node.requireSays(t, 4, "`gojail check`")
	r := s.head.run("", "gojail check")
	assert.NotContains(t, r.Stdout, "FAIL  sessions", r)
}

// giveSessionsBack is docs/operations.md, Give sessions back to the node, on the head.
func (s *site) giveSessionsBack(t *testing.T) {
	t.Helper()
	steps := readProcedure(t, "operations.md", "Give sessions back to the node")
	require.Len(t, steps, 6)
	steps.requireSays(t, 1, "`touch /etc/nologin`")
	steps.requireSays(t, 1, "`loginctl terminate-user USER`")
	requireAll(t, s.onlyHead(), "touch /etc/nologin")
	r := s.n2.run("", sshToHead+"true")
	assert.NotZero(t, r.Code, r)
	requireAll(t, s.onlyHead(), "loginctl terminate-user alice 2>/dev/null || [ -z \"$(loginctl --no-legend list-sessions | grep alice)\" ]")
	s.requireNoLogin(t)
	steps.requireSays(t, 2, "take out ForceCommand with its `Match` line, and XAuthLocation")
	requireAll(t, s.onlyHead(), "sed -i '/^Match User /d; /ForceCommand/d; /^XAuthLocation/d' /etc/ssh/sshd_config && sshd -t && systemctl reload ssh")
	steps.requireSays(t, 3, "`usermod -s /bin/bash USER`")
	requireAll(t, s.onlyHead(), "for user in $(grep gojail-session /etc/passwd | cut -d: -f1); do usermod -s /bin/bash $user; done")
	steps.requireSays(t, 4, "prints nothing")
	r = s.head.run("", "getent passwd alice; sshd -T -C user=alice,host=localhost,addr=127.0.0.1 | grep gojail")
	assert.NotContains(t, r.Stdout, "gojail", r)
	steps.requireSays(t, 5, "`rm -f /etc/nologin /etc/gojail/session.conf`")
	requireAll(t, s.onlyHead(), "rm -f /etc/nologin /etc/gojail/session.conf")
	requireOutput(t, s.n2.run("", sshToHead+"'hostname; ls "+marker+" 2>/dev/null; true'"), "head")
	steps.requireSays(t, 6, "`systemctl unmask user@.service`")
	requireAll(t, s.onlyHead(), "systemctl unmask user@.service; rm -f /etc/cron.allow /etc/at.allow")
}

// requireNoLogin waits until alice has neither a session, nor a cgroup, nor a sandbox on the head.
func (s *site) requireNoLogin(t *testing.T) {
	t.Helper()
	const left = "loginctl --no-legend list-sessions | grep alice; ls -d /sys/fs/cgroup/user.slice/user-5001.slice; gojail ls | grep login-; " +
		"ls -d /run/gojail/jobs/login-* /var/lib/gojail/jobs/login-*"
	assert.True(t, poll(6*time.Minute, func() bool { return s.head.run("", left).Stdout == "" }), "%v", s.head.run("", left))
}

// startSession begins a session of alice on the head that first prints things of its own and then waits for a file. It
// returns where its end comes.
func (s *site) startSession(t *testing.T, name string) <-chan wire.Reply {
	t.Helper()
	ended := s.n2.start("", sshToHead+fmt.Sprintf("'echo $(cat %s) $(cat /proc/self/loginuid) $(grep ^0:: /proc/self/cgroup); "+
		"touch in-%[2]s; until [ -e leave-%[2]s ]; do sleep 1; done; rm in-%[2]s leave-%[2]s'", marker, name))
	require.True(t, poll(6*time.Minute, func() bool { return s.head.run("alice", "test -e in-"+name).Code == 0 }), "%v",
		s.head.run("", "journalctl --no-pager -n 40 -u ssh -u systemd-logind; loginctl"))
	return ended
}

// waitReply waits for the end of a session.
func waitReply(ended <-chan wire.Reply) result {
	select {
	case reply := <-ended:
		return result{reply, "n2", "ssh"}
	case <-time.After(6 * time.Minute):
		return result{wire.Reply{Code: -1, Stderr: "the session has not ended"}, "n2", "ssh"}
	}
}

// TestLoginNode: under a real systemd, with pam_systemd, a session of ssh is in the login jail and for logind a session like any
// other: in the slice of its user, with the user's login uid, and it ends with the logout or by loginctl. Then sessions are given back.
func TestLoginNode(t *testing.T) {
	s := sharedSite(t)
	before := s.inventory()
	s.makeLoginNode(t)
	ended := s.startSession(t, "one")
	r := s.head.run("", "loginctl --no-legend list-sessions | awk '$3 == \"alice\" { print $1 }'")
	id := strings.TrimSpace(r.Stdout)
	require.Regexp(t, `^c?\d+$`, id, r)
	requireOutput(t, s.head.run("", "loginctl show-session "+id+" -p Name -p Scope -p Service -p Remote -p Class"),
		"Name=alice", "Scope=session-"+id+".scope", "Service=sshd", "Remote=yes", "Class=user")
	r = s.head.run("", "gojail ls")
	assert.Regexp(t, `(?m)^login-5001 +debian `, r.Stdout, r)
	// What holds the sandbox runs outside the session, whose scope has sshd's, gojail-session's and the user's processes.
	r = s.head.run("", "cat $(find /sys/fs/cgroup/user.slice/user-5001.slice -name cgroup.procs) | xargs -I{} cat /proc/{}/comm")
	assert.NotContains(t, r.Stdout, "gojail-launch", r)
	assert.NotContains(t, r.Stdout, "systemd", r)
	requireOutput(t, s.n2.run("", sshToHead+"srun -Q -w n1 cat "+marker), "debian")

	require.Zero(t, s.head.run("alice", "touch leave-one").Code)
	requireOutput(t, waitReply(ended), "debian 5001 0::/user.slice/user-5001.slice/session-"+id+".scope")
	s.requireNoLogin(t)

	ended = s.startSession(t, "two")
	requireAll(t, s.onlyHead(), "loginctl terminate-user alice")
	r = waitReply(ended)
	assert.Equal(t, 255, r.Code, r)
	s.requireNoLogin(t)
	s.giveSessionsBack(t)
	s.assertNothingLeft(t, before)
}
