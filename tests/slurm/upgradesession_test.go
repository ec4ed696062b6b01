// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// sshPort is that of the sshd of prepareSessions.
const sshPort = "2201"

// sessionFiles is the configuration of sessions on n1.
var sessionFiles = map[string]string{"/etc/gojail/session.conf": "state=/run/gojail/%n\nnode=n1\n"}

// loginTable makes login1 a login node.
const loginTable = "[login]\njail = \"debian\"\nnodes = [\"login1\"]\nlinger = \"1s\"\n"

// upgradedSession is a session of alice's by ssh: in a job on n1, or, without one, on login1.
type upgradedSession struct {
	c   *harness.Cluster
	job string
}

// prepareSessions starts an sshd whose ForceCommand is gojail-session.
func prepareSessions(t *testing.T, c *harness.Cluster) {
	t.Helper()
	require.NoError(t, c.PrepareSSH())
	require.NoError(t, c.StartSSHD(sshPort, "AcceptEnv SLURM_JOB_ID\nForceCommand "+harness.SessionProgram+"\n"))
}

// find returns the node of the session, and the name of its sandbox.
func (s upgradedSession) find() (node, sandbox string) {
	if s.job == "" {
		return "login1", "login-5001"
	}
	return "n1", s.job
}

// format returns the command line of a session. Up to its end, the machine is the node of the session.
func (s upgradedSession) format(command string) harness.Command {
	args := []string{"ssh", "-oBatchMode=yes", "-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "-oLogLevel=ERROR", "-p", sshPort}
	if s.job != "" {
		args = append(args, "-oSetEnv=SLURM_JOB_ID="+s.job)
	}
	return harness.Command{User: harness.Alice, Args: append(args, "alice@127.0.0.1", command)}
}

// become makes the machine the node of the session, for gojail-session.
func (s upgradedSession) become(t *testing.T) {
	t.Helper()
	node, _ := s.find()
	require.Zero(t, s.c.Root("sed", "-i", "s/^node=.*/node="+node+"/", "/etc/gojail/session.conf").Code)
}

// run runs a command in a session.
func (s upgradedSession) run(t *testing.T, command string) harness.Result {
	t.Helper()
	s.become(t)
	return s.c.Do(s.format(command))
}

// start starts a session, and returns when it runs. The function that it returns ends the session, and requires a good end.
func (s upgradedSession) start(t *testing.T) (end func()) {
	t.Helper()
	s.become(t)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := s.c.Exec(ctx, s.format("touch /tmp/logged-in; until [ -e /tmp/leave ]; do sleep 0.1; done; cat "+marker))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		cmd.Wait() // a second time it fails
	})
	node, sandbox := s.find()
	tmp := s.c.Path("/var/lib/gojail/" + node + "/jobs/" + sandbox + "/tmp/")
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		_, err := os.Stat(tmp + "/logged-in")
		return err == nil
	}), "no session in %s: %s", sandbox, s.c.Root("cat", "/var/log/sshd-"+sshPort+".log"))
	return func() {
		t.Helper()
		require.NoError(t, os.WriteFile(tmp+"/leave", nil, 0o644))
		defer time.AfterFunc(harness.Timeout, cancel).Stop()
		err := cmd.Wait()
		require.NoError(t, err, out.String())
		assert.Equal(t, "debian\n", out.String())
		if s.job == "" {
			s.requireEnded(t)
		}
	}
}

// requireEnded waits until nothing is left of the sandbox of a login node.
func (s upgradedSession) requireEnded(t *testing.T) {
	t.Helper()
	const list = "ls -d /run/gojail/login1/jobs/login-* /var/lib/gojail/login1/jobs/login-* 2>/dev/null"
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return s.c.Root("sh", "-c", list).Stdout == "" }), "%s", s.c.Root("sh", "-c", list))
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.c.Find("gojail-launcher login")) == 0 }), "%v", s.c.Find("gojail-launcher login"))
}
