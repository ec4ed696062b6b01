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
		"no adoption":  {good, "", "no pam_slurm_adopt"},
		"not used":     {"HostKey /etc/ssh/host\n", "", ""},
		"adopted only": {"HostKey /etc/ssh/host\n", "echo account required pam_slurm_adopt.so >>/etc/pam.d/sshd", "runs in its job's cgroup, but outside the jail"},
		"rc":           {strings.Replace(good, "PermitUserRC no\n", "", 1), "", "FAIL  sessions: sshd executes ~/.ssh/rc on the node"},
		"environment":  {good + "PermitUserEnvironment yes\n", "", "FAIL  sessions: sshd gives programs on the node the variables of ~/.ssh/environment"},
		"pam":          {good, "echo session required pam_env.so user_readenv=1 >>/etc/pam.d/sshd", "FAIL  sessions: PAM gives sshd's programs on the node the variables of ~/.pam_environment"},
		"sockets":      {strings.Replace(good, "AllowStreamLocalForwarding no\n", "", 1), "", "WARN  sessions: users reach Unix sockets of the node"},
		"x11":          {good + "X11Forwarding yes\n", "", "WARN  sessions: sshd stores the cookie of ssh -X by xauth on the node"},
		"chroot":       {good + "ChrootDirectory /srv\n", "", "WARN  sessions: sshd changes its root to /srv, where it does not find " + program},
		"no PAM":       {strings.Replace(good, "UsePAM yes", "UsePAM no", 1), "", "WARN  sessions: sshd does not use PAM"},
		"no choice":    {strings.Replace(good, "AcceptEnv SLURM_*", "AcceptEnv SLURM_JOB_ID", 1), "", "WARN  sessions: sshd does not accept SLURM_JAIL: "},
		"all accepted": {good + "AcceptEnv *\n", "", "FAIL  sessions: sshd gives programs on the node the client's LD_PRELOAD (AcceptEnv LANG LC_* SLURM_* *)"},
		"internal": {strings.Replace(good, "ForceCommand "+program+"\n", "", 1), "sed -i 's/^.slurm.$/[session]\\n[slurm]/' /etc/gojail/gojail.toml",
			"FAIL  sessions: sshd's internal-sftp reads and writes files of the node"},
		"listed":   {good, "echo " + program + " >>/etc/shells", "WARN  sessions: /etc/shells lists " + program + ": with su -s and chsh users choose another shell"},
		"no bit":   {good, "chmod 755 " + program, "FAIL  sessions: " + program + " is not set-user-ID root"},
		"of group": {good, "chmod 4775 " + program, "FAIL  sessions: " + program + " is not set-user-ID root"},
		"sshd":     {good + "Nonsense yes\n", "sed -i 's/^.slurm.$/[session]\\n[slurm]/' /etc/gojail/gojail.toml", "WARN  sessions: cannot read the settings of sshd"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Zero(t, s.Root("sh", "-ec", "cp /etc/pam.d/sshd /root/pam; cat >"+conf+" <<E\n"+test.config+"E\n"+test.script).Code)
			found := s.listFindings("n1")
			require.Zero(t, s.Root("sh", "-ec", "mv /root/pam /etc/pam.d/sshd; sed -i /gojail/d /etc/shells; chmod 4755 "+program).Code)
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
