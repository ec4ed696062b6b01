// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// SessionProgram is the path of gojail-session in the machine.
const SessionProgram = Prefix + "/lib/gojail/gojail-session"

// prepareSSH is a script that makes the keys of the host and of the users, and installs gojail-session like make install. Each user's
// key opens the user's own account, and root's key also opens alice's.
const prepareSSH = `
mkdir -p /run/sshd /etc/ssh/keys
ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/host
for user in root alice bob; do
	home=$(getent passwd $user | cut -d: -f6)
	mkdir -p -m 700 $home/.ssh
	ssh-keygen -q -t ed25519 -N '' -f $home/.ssh/id_ed25519
	cp $home/.ssh/id_ed25519.pub /etc/ssh/keys/$user
	chown -R $user: $home/.ssh
done
cat /root/.ssh/id_ed25519.pub >>/etc/ssh/keys/alice
[ ! -e ` + SessionProgram + ` ] || chmod 4755 ` + SessionProgram + `
`

// sshdConfig is what each sshd of the machine has.
const sshdConfig = `Port %s
ListenAddress 127.0.0.1
ListenAddress ` + Address + `
HostKey /etc/ssh/host
PidFile none
AuthorizedKeysFile /etc/ssh/keys/%%u
UsePAM yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 100
%s`

// PrepareSSH makes what each sshd of the machine needs.
func (c *Cluster) PrepareSSH() error {
	if r := c.Root("sh", "-euc", prepareSSH); r.Code != 0 {
		return fmt.Errorf("cluster: ssh: %s", r)
	}
	return nil
}

// StartSSHD starts an sshd on a port of the machine, with further lines of its configuration, and waits until it answers there. It
// is started through another command if one is given. Its configuration is /etc/ssh/sshd-PORT, and its log /var/log/sshd-PORT.log.
func (c *Cluster) StartSSHD(port, lines string, by ...string) error {
	config := "/etc/ssh/sshd-" + port
	if err := replaceFile(filepath.Join(c.root, config), fmt.Sprintf(sshdConfig, port, lines), 0o644); err != nil {
		return err
	}
	if r := c.Root(append(slices.Clone(by), "/usr/sbin/sshd", "-f", config, "-E", "/var/log/sshd-"+port+".log")...); r.Code != 0 {
		return fmt.Errorf("cluster: sshd: %s", r)
	}
	answers := func() bool { // an emulated machine takes seconds for a key; and sshd punishes who asks too often
		return strings.Contains(c.Root("ssh-keyscan", "-T", "20", "-t", "ed25519", "-p", port, "127.0.0.1").Stdout, "ssh-ed25519")
	}
	if !Poll(Timeout, answers) {
		return fmt.Errorf("cluster: sshd on port %s does not answer: %s", port, c.Root("cat", "/var/log/sshd-"+port+".log"))
	}
	return nil
}
