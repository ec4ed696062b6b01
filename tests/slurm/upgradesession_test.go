// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"context"
	"errors"
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

// prepareSessions starts an sshd for n1 whose ForceCommand is gojail-session.
func prepareSessions(t *testing.T, c *harness.Cluster) {
	t.Helper()
	require.NoError(t, c.PrepareSSH())
	require.NoError(t, c.StartSSHD(sshPort, "AcceptEnv SLURM_JOB_ID\nForceCommand "+harness.SessionProgram+"\n"))
}

// formatSession returns the command line of a session of alice's by ssh, in the sandbox of a job on n1.
func formatSession(job, command string) harness.Command {
	return harness.Command{User: harness.Alice, Args: []string{"ssh", "-oBatchMode=yes", "-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null",
		"-oLogLevel=ERROR", "-oSetEnv=SLURM_JOB_ID=" + job, "-p", sshPort, "alice@127.0.0.1", command}}
}

// startSession starts a session in a job, and returns when it runs. The function that it returns ends the session, and requires a good end.
func startSession(t *testing.T, c *harness.Cluster, job string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := c.Exec(ctx, formatSession(job, "touch /tmp/logged-in; until [ -e /tmp/leave ]; do sleep 0.1; done; cat "+marker))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		cmd.Wait() // a second time it fails
	})
	tmp := c.Path("/var/lib/gojail/n1/jobs/" + job + "/tmp/")
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		_, err := os.Stat(tmp + "/logged-in")
		return err == nil
	}), "no session in job %s: %s", job, c.Root("cat", "/var/log/sshd-"+sshPort+".log"))
	return func() {
		t.Helper()
		require.NoError(t, os.WriteFile(tmp+"/leave", nil, 0o644))
		defer time.AfterFunc(harness.Timeout, cancel).Stop()
		err := cmd.Wait()
		require.NoError(t, err, out.String())
		assert.Equal(t, "debian\n", out.String())
		require.NoError(t, errors.Join(os.Remove(tmp+"/logged-in"), os.Remove(tmp+"/leave")))
	}
}
