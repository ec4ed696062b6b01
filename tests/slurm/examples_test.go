// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestExamplesAsTheyAre: the example files, as make install brings them, give a cluster that works.
func TestExamplesAsTheyAre(t *testing.T) {
	c := harness.Start(t, harness.Options{Jails: []string{"debian"}, Plugin: true, Bare: true})
	for _, node := range harness.Nodes {
		require.NoError(t, c.StopSlurmd(node))
	}
	stopSlurmctld(t, c)
	repo, err := harness.Repository()
	require.NoError(t, err)
	for example, target := range map[string]string{
		"slurm.conf": "/etc/slurm/slurm.conf", "plugstack.conf": "/etc/slurm/plugstack.conf", "gojail.toml": harness.ConfigPath,
		"health.toml": "/etc/gojail/health.toml",
	} {
		text, err := os.ReadFile(filepath.Join(repo, example+".example"))
		require.NoError(t, err)
		// As make install does; /usr is not the machine's own.
		replaceFile(t, c.Path(target), strings.ReplaceAll(string(text), "/usr/local/lib/gojail", harness.Prefix+"/lib/gojail"))
	}
	replaceFile(t, c.Path("/etc/hosts"), "127.0.0.1 localhost\n"+harness.Address+" head n1\n192.0.2.99 n2\n") // there is no n2
	require.Zero(t, c.Root("sh", "-c", "rm -rf /var/lib/slurm/*; sed -i /gojail-user/d /srv/jails/debian/etc/passwd").Code)
	gojail := func(args ...string) harness.Result {
		return c.Root(append([]string{"gojail", "--node=n1"}, args...)...)
	}
	r := gojail("init", "debian")
	require.Zero(t, r.Code, r)
	r = c.Root("/usr/sbin/slurmctld", "-c")
	require.Zero(t, r.Code, r)

	for _, spool := range []string{"", "/var/lib/slurm/slurmd", "/var/spool/slurmd/%n-%h"} {
		t.Run("SlurmdSpoolDir="+spool, func(t *testing.T) {
			if spool != "" {
				conf := readFile(c, "/etc/slurm/slurm.conf")
				at := strings.Index(conf, "\nSlurmdSpoolDir=")
				require.Positive(t, at)
				rest := conf[at+1:]
				replaceFile(t, c.Path("/etc/slurm/slurm.conf"), conf[:at+1]+"SlurmdSpoolDir="+spool+rest[strings.Index(rest, "\n"):])
				r := gojail("init", "debian")
				require.Zero(t, r.Code, r)
			}
			require.NoError(t, c.StartSlurmd("n1"))
			t.Cleanup(func() { c.StopSlurmd("n1") })
			require.True(t, harness.Poll(harness.Timeout, func() bool { return c.NodeState("n1") == "idle" }), c.Root("sinfo", "-lN"))
			check := gojail("check")
			assert.NotContains(t, check.Stdout, "FAIL", check)
			assert.Contains(t, check.Stdout, "OK    spool: ", check)
			requireOutput(t, "debian", c.Run(harness.Alice, "srun", "cat", marker))
			job := c.Batch(harness.Alice, "cat "+marker+"; id -un; pwd; srun -Q cat "+marker)
			assert.Equal(t, "COMPLETED debian\nalice\n/home/alice\ndebian\n", job.State+" "+job.Output, job)
		})
	}
}

// stopSlurmctld ends slurmctld.
func stopSlurmctld(t *testing.T, c *harness.Cluster) {
	t.Helper()
	pid := strings.TrimSpace(readFile(c, "/run/slurm/slurmctld.pid"))
	require.NotEmpty(t, pid)
	require.Zero(t, c.Root("kill", pid).Code)
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Stat(c.Path("/proc/" + pid)); return err != nil }))
}

// TestCheckOfPlugstack: what fails every step is found before a step does.
func TestCheckOfPlugstack(t *testing.T) {
	c := harness.Start(t, harness.Options{Jails: []string{"debian", "other"}, Plugin: true})
	const plugstack = "/etc/slurm/plugstack.conf"
	line := strings.TrimSpace(readFile(c, plugstack)[strings.LastIndex(readFile(c, plugstack), "required "):])
	try := func() harness.Result { return c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker) }
	health := func() string { return c.Root("gojail-healthcheck", "--dry-run", "--node=n1").Stdout }
	requireOutput(t, "debian", try())
	for name, test := range map[string]struct{ text, want string }{
		"an unknown argument":       {line + " conf=/etc/x", "conf=/etc/x"},
		"a missing configuration":   {line + " config=/etc/gojail/none.toml", "the plugin uses config=/etc/gojail/none.toml, with which every job step fails"},
		"named twice by an include": {"include plugstack.conf.d/*.conf\n" + line, "spank_gojail.so is named 2 times"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.MkdirAll(c.Path("/etc/slurm/plugstack.conf.d"), 0o755))
			replaceFile(t, c.Path("/etc/slurm/plugstack.conf.d/gojail.conf"), line+"\n")
			replaceFile(t, c.Path(plugstack), test.text+"\n")
			t.Cleanup(func() { replaceFile(t, c.Path(plugstack), line+"\n") })
			r := try()
			assert.NotZero(t, r.Code, r)
			assert.NotContains(t, r.Stdout, "debian")
			t.Log(strings.TrimSpace(r.Stderr))
			r = c.Gojail("n1", "check")
			assert.Equal(t, 1, r.Code, r)
			assert.Contains(t, r.Stdout, "FAIL  plugstack: ", r)
			assert.Contains(t, r.Stdout, test.want, r)
			assert.Contains(t, health(), test.want)
		})
	}
	requireOutput(t, "debian", try())
}
