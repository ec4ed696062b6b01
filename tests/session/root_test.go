// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestRootOfTheJob requires that in a job with --jail-root a session is root in the jail, like the job's tasks.
func TestRootOfTheJob(t *testing.T) {
	s := sharedSite(t)
	require.NoError(t, s.WriteConfig(strings.Replace(configuration, `jail_root = ["self"]`, `jail_root = ["self", "range"]`, 1)))
	require.Zero(t, s.Root("sh", "-ec", "for f in subuid subgid; do cp /etc/$f /root; echo alice:300000:65536 >/etc/$f; done; chmod 700 /srv/jails").Code)
	t.Cleanup(func() {
		require.Zero(t, s.Root("sh", "-ec", "mv /root/subuid /root/subgid /etc; chmod 755 /srv/jails; rm -f /srv/jails/debian/opt/tool").Code)
		require.NoError(t, s.WriteConfig(configuration))
	})
	for kind, maps := range map[string]string{"self": `( +0 +5001 +1\n)`, "range": `( +0 +300000 +65536\n)`} {
		job := s.startJob(t, harness.Alice, "--jail=root", "--jail-root="+kind)
		r := s.runSSH(harness.Alice, "none", shells, "id -u; cat /proc/self/uid_map; echo $PATH; "+rights)
		require.Zero(t, r.Code, r)
		assert.Regexp(t, `^0\n`+maps+`/usr/local/sbin:/usr/local/bin:/usr/sbin:`, r.Stdout, "%s: %v", kind, r)
		assert.Contains(t, r.Stdout, "NoNewPrivs:\t1\n", kind)
		assert.Contains(t, r.Stdout, "Seccomp:\t2\n", kind)
		task := s.Run(harness.Alice, "srun", "--jobid="+job, "--overlap", "-Q", "--jail=root", "--jail-root="+kind, "bash", "-c", rights)
		require.Zero(t, task.Code, task)
		_, own, _ := strings.Cut(r.Stdout, "sbin:/bin\n")
		assert.Equal(t, withoutInheritedSignals(t, strings.TrimSpace(task.Stdout)), strings.TrimSpace(own), kind)
		requireOutput(t, "a\nb", s.runSSH(harness.Alice, "none", shells, "echo a >/dev/stdout; echo b >/proc/self/fd/1"))
		if kind == "range" {
			requireOutput(t, "7:8", s.runSSH(harness.Alice, "none", shells, "touch /opt/tool && chown 7:8 /opt/tool && stat -c %u:%g /opt/tool"))
			_, err := os.Stat(s.Path("/srv/jails/debian/opt/tool"))
			assert.NoError(t, err)
		}
		socket := s.runSSH(harness.Alice, "none", shells, "test -S /run/munge/munge.socket.2 && echo munge; true")
		assert.Equal(t, kind == "self", socket.Stdout == "munge\n", "%s: munge certifies ids of a range as accounts: %v", kind, socket)
		s.endJob(t, job)
	}
}

// TestSessionHasTheJobsMounts requires that a session sees what --jail-mount shows the job.
func TestSessionHasTheJobsMounts(t *testing.T) {
	s := sharedSite(t)
	require.Zero(t, s.Root("sh", "-ec", "mkdir -p /data/measured; echo 42 >/data/measured/file").Code)
	t.Cleanup(func() { s.Root("rm", "-r", "/data/measured") })
	s.startJob(t, harness.Alice, "--jail=debian", "--jail-mount=/data/measured:/mnt:ro")
	for _, port := range []string{forced, shells} {
		requireOutput(t, "42", s.runSSH(harness.Alice, "none", port, "cat /mnt/file; touch /mnt/other 2>/dev/null && echo written; true"))
	}
}
