// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestAgentIsSSHDs: a session reaches the agent that sshd forwards, and no other socket of the user's on the node: a systemd
// there, say, starts whatever it is told. PAM may let users choose SSH_AUTH_SOCK (pam_env's user_readenv).
func TestAgentIsSSHDs(t *testing.T) {
	s := shared(t)
	s.start(t, harness.Alice, "--jail=debian")
	s.background(t, harness.Alice, "perl", "-MIO::Socket::UNIX", "-e", `$s = IO::Socket::UNIX->new(Local => "/tmp/alices", Listen => 9); open F, ">", "/tmp/told"; F->autoflush;
		while ($c = $s->accept) { print F "accepted\n"; print F "told $got\n" if sysread $c, $got, 1 }`)
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Stat(s.Path("/tmp/told")); return err == nil }))
	t.Cleanup(func() { s.Root("rm", "-f", "/tmp/alices", "/tmp/told", "/home/alice/.pam_environment") })
	told := func() string {
		text, err := os.ReadFile(s.Path("/tmp/told"))
		require.NoError(t, err)
		return string(text)
	}
	const ask = "echo $SSH_AUTH_SOCK; ssh-add -l 2>&1 | tail -1"
	assert.Regexp(t, "^/tmp/ssh-", s.call("SSH_AUTH_SOCK=/tmp/alices $P -c '"+ask+"'").Stdout)
	assert.NotContains(t, told(), "told", "by hand")
	require.Zero(t, s.Run(harness.Alice, "sh", "-c", "echo SSH_AUTH_SOCK=/tmp/alices >~/.pam_environment").Code)
	for _, port := range []string{forced, shells} {
		r := s.ssh(harness.Alice, "none", port, ask)
		assert.Zero(t, r.Code, r)
		assert.NotContains(t, told(), "told", r)
	}
}

// witness has the node's name service say what gojail-session was when it was asked.
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
	require.NoError(t, os.WriteFile(s.Path("/srv/witness/saw"), nil, 0o644))
	return func() string {
		text, err := os.ReadFile(s.Path("/srv/witness/saw"))
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return lines[len(lines)-1] // before it are those of programs around the test
	}
}

// TestDescriptorsOfNameServices: what a name service of the node leaves open is not for the jail.
func TestDescriptorsOfNameServices(t *testing.T) {
	s := shared(t)
	s.start(t, harness.Alice, "--jail=debian")
	saw := s.witness(t)
	prints(t, "0 1 2 3", s.call("$P -c 'echo $(ls /proc/self/fd)'"))
	assert.NotEmpty(t, saw(), "the witness was asked")
}
