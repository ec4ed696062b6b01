// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

const program = harness.SessionProgram

// The ports of the two sshd: one has a ForceCommand, the other one starts the login shells.
const (
	forced = "2201"
	shells = "2202"
)

// site is a cluster whose node n1 has both sshd. alice's login shell there is gojail-session, bob's is bash.
type site struct{ *harness.Cluster }

var common harness.Shared[*site]

func TestMain(m *testing.M) { os.Exit(common.Main(m)) }

// findMissing returns what this machine lacks for a site, or "".
func findMissing() string {
	for _, path := range []string{"/usr/sbin/sshd", "/usr/bin/rsync"} {
		if _, err := os.Stat(path); err != nil && harness.Release() == "" {
			return "needs " + path + ": make deps installs it"
		}
	}
	return harness.Missing()
}

// sharedSite returns the common site, with its first configuration.
func sharedSite(t *testing.T) *site {
	t.Helper()
	if why := findMissing(); why != "" {
		t.Skip(why)
	}
	s := common.Get(t, func() (*site, error) { return newSite(harness.Options{}) })
	s.ShowLogs(t)
	t.Cleanup(func() { require.True(t, s.WaitIdle(), "a test leaves its nodes idle") })
	return s
}

// lax switches off most of a jail's isolation.
const lax = `no_new_privs = false
capabilities = ["ALL"]
seccomp = "none"
options = []
`

// configuration is gojail.toml.
var configuration = strings.Replace(harness.DefaultConfig, "[jail.other]", `[jail.root]
root = "/srv/jails/debian"
jail_root = ["self"]

[jail.lax]
root = "/srv/jails/other"
namespaces = []
`+lax+`
[jail.laxpid]
root = "/srv/jails/other"
`+lax+`
[jail.other]`, 1)

const sshdLines = `AcceptEnv LANG LC_* SLURM_JOB_ID SLURM_JAIL
X11Forwarding yes
XAuthLocation ` + program + `
PermitUserRC no
AllowStreamLocalForwarding no
`

// newSite starts the cluster and both sshd; after an error, the site may be there and must be stopped.
func newSite(options harness.Options) (*site, error) {
	options.Plugin, options.Jails, options.Config = true, []string{"debian", "other"}, configuration
	options.Files = maps.Clone(options.Files)
	if options.Files == nil {
		options.Files = map[string]string{}
	}
	options.Files["/etc/gojail/session.conf"] = "state=/run/gojail/%n\nnode=n1\n"
	c, err := harness.Up(options)
	if err != nil {
		return nil, err
	}
	s := &site{c}
	if err := s.PrepareSSH(); err != nil {
		return s, err
	}
	if r := s.Root("sh", "-euc", prepare); r.Code != 0 {
		return s, fmt.Errorf("session: %s", r)
	}
	if err := s.StartSSHD(forced, sshdLines+"Subsystem sftp internal-sftp\nForceCommand "+program+"\n"); err != nil {
		return s, err
	}
	return s, s.StartSSHD(shells, sshdLines+"Subsystem sftp /usr/lib/openssh/sftp-server\n")
}

// prepare is a script that makes gojail-session alice's login shell, and installs the programs in the jails that scp, sftp, rsync
// and ssh -X start.
var prepare = `
usermod -s ` + program + ` alice
for jail in debian other; do
	for file in /usr/lib/openssh/sftp-server /usr/bin/scp /usr/bin/rsync /usr/bin/ssh /usr/bin/ssh-add /usr/bin/xauth; do
		mkdir -p /srv/jails/$jail${file%/*}
		cp $file /srv/jails/$jail$file
		for library in $(ldd $file | grep -o '/[^ ]*'); do
			mkdir -p /srv/jails/$jail${library%/*}
			[ -e /srv/jails/$jail$library ] || cp $library /srv/jails/$jail$library
		done
	done
done
`

const sshOptions = "-oBatchMode=yes -oStrictHostKeyChecking=no -oUserKnownHostsFile=/dev/null -oLogLevel=ERROR"

// listSSHArguments returns the beginning of a command line of ssh, scp or sftp; port is that of one of both sshd.
func listSSHArguments(name, port string) []string {
	flag := map[bool]string{true: "-p", false: "-P"}[name == "ssh"]
	return append(append([]string{name}, strings.Fields(sshOptions)...), flag, port)
}

// runSSH runs a command by ssh to the node, with SLURM_JOB_ID in its environment unless job is "none".
func (s *site) runSSH(user, job, port string, command ...string) harness.Result {
	return s.Do(harness.Command{User: user, Args: formatSSHCommand(user, job, port, command...)})
}

func formatSSHCommand(user, job, port string, command ...string) []string {
	args := listSSHArguments("ssh", port)
	if job != "none" {
		args = append(args, "-oSetEnv=SLURM_JOB_ID="+job)
	}
	return append(append(args, user+"@127.0.0.1"), command...)
}

// startJob starts a job of a user on n1 that ends with the test, and waits until its sandbox exists and its script has started sleep(1). It
// returns the job's number.
func (s *site) startJob(t *testing.T, user string, args ...string) string {
	t.Helper()
	script := "#!/bin/bash\necho hello >/tmp/of-$SLURM_JOB_ID\nsleep 1000 &\nuntil grep -q sleep /proc/$!/comm; do :; done\ntouch /tmp/ready\nwait\n"
	r := s.Do(harness.Command{User: user, Stdin: script, Args: append([]string{"sbatch", "--parsable", "-wn1", "--output=/dev/null"}, args...)})
	require.Zero(t, r.Code, r)
	job := strings.TrimSpace(r.Stdout)
	t.Cleanup(func() { s.endJob(t, job) })
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		_, err := os.Stat(s.Path("/var/lib/gojail/n1/jobs/" + job + "/tmp/ready"))
		return err == nil
	}), "job %s does not start: %v", job, s.JobFields(job))
	return job
}

// endJob cancels a job and waits until nothing of it is left.
func (s *site) endJob(t *testing.T, job string) {
	t.Helper()
	s.Root("scancel", job)
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		_, err := os.Stat(s.Path("/run/gojail/n1/jobs/" + job))
		return os.IsNotExist(err)
	}), "job %s does not end", job)
}

// startInBackground starts a command in the machine and ends it with the test.
func (s *site) startInBackground(t *testing.T, user string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := s.Exec(ctx, harness.Command{User: user, Args: args})
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		cmd.Wait()
	})
	return cmd
}
