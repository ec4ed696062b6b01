// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listFindings returns the lines of `gojail check` about sessions.
func (s *site) listFindings(node string) (lines string) {
	for line := range strings.Lines(s.Gojail(node, "check").Stdout) {
		if strings.Contains(line, " sessions: ") {
			lines += line
		}
	}
	return lines
}

// TestCheckLooksAtSSHD covers the findings of gojail check about faulty configurations of sshd, accounts, PAM and the program.
func TestCheckLooksAtSSHD(t *testing.T) {
	s := sharedSite(t)
	const conf = "/etc/ssh/sshd_config"
	t.Cleanup(func() { s.Root("rm", "-f", conf) })
	good := "UsePAM yes\nAcceptEnv LANG LC_*\nAcceptEnv SLURM_*\nHostKey /etc/ssh/host\nPermitUserRC no\nAllowStreamLocalForwarding no\nForceCommand " + program + "\nSubsystem sftp internal-sftp\n"
	for name, test := range map[string]struct{ config, script, want string }{
		"good":         {good, "", "sshd starts " + program},
		"shells":       {good, "", "bob on the node, where it reads their start-up files"},
		"not used":     {"HostKey /etc/ssh/host\n", "usermod -s /bin/bash alice", ""},
		"adopted only": {"HostKey /etc/ssh/host\n", "usermod -s /bin/bash alice; echo account required pam_slurm_adopt.so >>/etc/pam.d/sshd", "runs in its job's cgroup, but outside the jail"},
		"all accepted": {good + "AcceptEnv *\n", "", "FAIL  sessions: sshd gives programs on the node the client's LD_PRELOAD (AcceptEnv LANG LC_* SLURM_* *)"},
		"of group":     {good, "chmod 4775 " + program, "FAIL  sessions: " + program + " is not set-user-ID root"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Zero(t, s.Root("sh", "-ec", "cp /etc/pam.d/sshd /root/pam; cat >"+conf+" <<E\n"+test.config+"E\n"+test.script).Code)
			found := s.listFindings("n1")
			require.Zero(t, s.Root("sh", "-ec", "mv /root/pam /etc/pam.d/sshd; sed -i /gojail/d /etc/shells; chmod 4755 "+program+"; usermod -s "+program+" alice").Code)
			require.NoError(t, s.WriteConfig(configuration))
			if test.want == "" {
				assert.Empty(t, found)
			}
			assert.Contains(t, found, test.want)
			if name == "good" {
				assert.NotRegexp(t, "client's|does not accept|does not use PAM|changes its root", found)
			}
		})
	}
}

// TestCheckOfALoginNode covers what gojail check says of a login node, on which there are no jobs that adopt sessions.
func TestCheckOfALoginNode(t *testing.T) {
	s := sharedLoginNode(t, loginTable)
	found := s.listFindings("login1")
	assert.Contains(t, found, "a login node: sessions are in other, debian", found)
	assert.NotContains(t, found, "pam_slurm_adopt", found)
	assert.NotContains(t, s.listFindings("n1"), "a login node")
	require.NoError(t, s.WriteConfig(strings.Replace(configuration, "[[jail.debian.user_mounts]]", "slurm = false\n[[jail.debian.user_mounts]]", 1)+loginTable))
	assert.Contains(t, s.listFindings("login1"), "WARN  sessions: jail debian: users cannot start jobs from sessions")
	require.Zero(t, s.Root("chmod", "755", program).Code)
	found = s.listFindings("login1")
	require.Zero(t, s.Root("chmod", "4755", program).Code)
	assert.Contains(t, found, "FAIL  sessions: "+program+" is not set-user-ID root", found)
}
