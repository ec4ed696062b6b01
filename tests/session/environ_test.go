// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// clients is the environment of whoever starts a session or enters a job.
var clients = []string{"LANG=de_DE.UTF-8", "LC_ALL=C", "TERM=vt100", "TZ=UTC", "MINE=1", "PATH=/usr/bin:/bin:/opt/gojail/sbin", "LD_LIBRARY_PATH=/opt/lib", "BASH_ENV=/opt/env",
	"BASH_FUNC_mine%%=() {  :\n}", "XDG_RUNTIME_DIR=/run/user/5001", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/5001/bus", "XDG_SESSION_ID=7", "KRB5CCNAME=FILE:/tmp/krb5cc",
	"SSH_AUTH_SOCK=/tmp/agent", "DISPLAY=:0", "CUDA_VISIBLE_DEVICES=7", "SLURM_EXPORT_ENV=NONE"}

// readVariables returns the values of the variables that "env -0" has printed, but for those that differ in each session or are of a shell.
func readVariables(t *testing.T, text string) map[string]string {
	t.Helper()
	variables := map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(text, "\x00"), "\x00") {
		name, value, found := strings.Cut(entry, "=")
		require.True(t, found, text)
		switch name {
		case "PWD", "SHLVL", "_":
		case "SSH_CONNECTION", "SSH_CLIENT":
			variables[name] = ""
		default:
			variables[name] = value
		}
	}
	return variables
}

// TestEnvironment requires exactly the documented variables (docs/users.md) in a session, in a command of gojail enter, and in a batch job
// without the user's environment, whose shell is gojail-session on the node.
func TestEnvironment(t *testing.T) {
	s := sharedSite(t)
	job := s.startJob(t, harness.Alice, "--jail=debian")
	login := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/alice", "USER": "alice", "LOGNAME": "alice", "SHELL": "/bin/bash"}
	with := func(more ...string) map[string]string {
		all := map[string]string{}
		for name, value := range login {
			all[name] = value
		}
		for _, entry := range more {
			name, value, _ := strings.Cut(entry, "=")
			all[name] = value
		}
		return all
	}
	for _, port := range []string{forced, shells} {
		args := append(listSSHArguments("ssh", port), "-o", "SendEnv=*", "alice@127.0.0.1", "exec /usr/bin/env -0")
		r := s.Do(harness.Command{User: harness.Alice, Env: clients, Args: args})
		require.Zero(t, r.Code, r)
		assert.Equal(t, with("LANG=de_DE.UTF-8", "LC_ALL=C", "SSH_CONNECTION=", "SSH_CLIENT=", "SLURM_JOB_ID="+job, "SLURM_JAIL=debian"), readVariables(t, r.Stdout))
	}
	r := s.Do(harness.Command{Env: clients, Args: []string{"gojail", "--node=n1", "--state=/run/gojail/%n", "enter", job, "--", "/usr/bin/env", "-0"}})
	require.Zero(t, r.Code, r)
	assert.Equal(t, with("LANG=de_DE.UTF-8", "TERM=vt100", "TZ=UTC"), readVariables(t, r.Stdout))

	batch := s.Batch(harness.Alice, "#!/bin/sh\necho $HOME $SHELL", "--jail=debian", "-wn1", "--overcommit", "--export=NONE")
	assert.Equal(t, "COMPLETED /home/alice /bin/bash\n", batch.State+" "+batch.Output, batch)
}
