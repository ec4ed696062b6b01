// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestConfigless: nodes and jails without /etc/slurm. slurmctld sends slurm.conf and
// plugstack.conf; srun in a jail finds both, however it looks for them.
func TestConfigless(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian", "other"}, NoConf: true})
	requireMissing(t, c, "/etc/slurm")
	requireMissing(t, c, "/srv/jails/debian/etc/slurm")
	for _, node := range harness.Nodes {
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-w"+node, "--jail=debian", "cat", marker))
		r := c.Gojail(node, "check")
		assert.Contains(t, r.Stdout, "OK    plugstack: "+harness.Prefix+"/lib/gojail/spank_gojail.so is required", r)
		assert.NotContains(t, r.Stdout, "FAIL", r)
	}
	const steps = "cat " + marker + "; srun -Q cat " + marker + "; env -u SLURM_CONF srun -Q --jail=other cat " + marker + "; srun -Q sinfo -ho %P; env -u SLURM_CONF sinfo -ho %P\n"
	for _, node := range harness.Nodes {
		job := c.Batch(harness.Alice, steps, "--jail=debian", "-w"+node)
		assert.Equal(t, "COMPLETED debian\ndebian\nother\nmain*\nmain*\n", job.State+" "+job.Output, job)
	}
	// In a sandbox that no batch script is for.
	requireOutput(t, "debian\nother", c.Run(harness.Alice, "srun", "--jail=debian", "sh", "-c", "srun --overlap cat "+marker+"; srun --overlap --jail=other cat "+marker))

	// What the administrator changes reaches jails, also those of tasks that are running.
	step, _ := allocate(t, c)
	running := make(chan harness.Result)
	go func() {
		running <- step("echo running >/home/alice/state; until grep ^PartitionName=extra $SLURM_CONF; do sleep 0.2; done")
	}()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return readFile(c, jailHome+"state") == "running\n" }))
	const conf = "/srv/slurmctld/slurm.conf"
	replaceFile(t, c.Path(conf), readFile(c, conf)+"PartitionName=extra Nodes=n1 State=UP\n")
	r := c.Root("scontrol", "reconfigure")
	require.Zero(t, r.Code, r)
	requireOutput(t, "PartitionName=extra Nodes=n1 State=UP", <-running)
}

// TestConfiglessInclude: slurmctld sends plugstack.conf, but not what that includes: the node must have it.
func TestConfiglessInclude(t *testing.T) {
	// A cluster for each: with cgroup v2, slurmd 24.11 does not survive its second reconfiguration in a cgroup of its own.
	start := func(t *testing.T, dir, name string) (*harness.Cluster, harness.Result) {
		c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian", "other"}, NoConf: true})
		const sent = "/srv/slurmctld/plugstack.conf"
		line := readFile(c, sent)
		require.Zero(t, c.Root("mkdir", "-p", dir).Code)
		replaceFile(t, c.Path(dir+"/gojail.conf"), line)
		replaceFile(t, c.Path(sent), "include "+name+"\n")
		reconfigure(t, c, "plugstack.conf", "include "+name+"\n")
		return c, c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker)
	}
	t.Run("beside what is sent", func(t *testing.T) {
		c, step := start(t, "/srv/slurmctld/plugstack.conf.d", "plugstack.conf.d/*.conf")
		assert.Contains(t, step.Stderr, "unrecognized option '--jail=debian'")
		assert.Contains(t, c.Gojail("n1", "check").Stdout, "FAIL  plugstack: no plugstack.conf of /var/spool/slurmd/n1/conf-cache names spank_gojail.so")
	})
	t.Run("of the node", func(t *testing.T) {
		c, step := start(t, "/etc/plugins", "/etc/plugins/*.conf")
		requireOutput(t, "debian", step)
		assert.NotContains(t, c.Gojail("n1", "check").Stdout, "FAIL")
	})
}

// reconfigure runs scontrol reconfigure, and waits until the nodes have the file with that text.
func reconfigure(t *testing.T, c *harness.Cluster, file, text string) {
	t.Helper()
	r := c.Root("scontrol", "reconfigure")
	require.Zero(t, r.Code, r)
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		for _, node := range harness.Nodes {
			if readFile(c, "/var/spool/slurmd/"+node+"/conf-cache/"+file) != text {
				return false
			}
		}
		return c.WaitIdle()
	}), c.Drained())
}

// TestConfiglessBesideAFile: slurmd --conf-server takes what slurmctld sends, also where the node has a slurm.conf, and
// srun takes that one. check tells of the jobs that run on the node itself for it.
func TestConfiglessBesideAFile(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian", "other"}, NoConf: true})
	copied := func(file string) string { return readFile(c, "/srv/slurmctld/"+file) }
	require.Zero(t, c.Root("mkdir", "-p", "/etc/slurm").Code)
	for _, file := range []string{"slurm.conf", "plugstack.conf"} {
		replaceFile(t, c.Path("/etc/slurm/"+file), copied(file))
	}
	for _, jail := range []string{"debian", "other"} {
		require.Zero(t, c.Gojail("n1", "init", jail).Code)
	}
	try := func() harness.Result { return c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker) }
	check := func() string { return c.Gojail("n1", "check").Stdout }
	const differs = "WARN  slurm: srun reads /etc/slurm/plugstack.conf, but slurmd reads /var/spool/slurmd/n1/conf-cache/plugstack.conf from slurmctld"
	requireOutput(t, "debian", try())
	assert.NotContains(t, check(), "FAIL")
	assert.NotContains(t, check(), "WARN  slurm", "both are the same")

	replaceFile(t, c.Path("/etc/slurm/plugstack.conf"), "")
	assert.Contains(t, try().Stderr, "unrecognized option '--jail=debian'")
	assert.Contains(t, check(), differs)
	assert.Contains(t, check(), "OK    plugstack: ", "a step that another node's srun starts")

	replaceFile(t, c.Path("/etc/slurm/plugstack.conf"), copied("plugstack.conf"))
	replaceFile(t, c.Path("/srv/slurmctld/plugstack.conf"), "# none\n")
	reconfigure(t, c, "plugstack.conf", "# none\n")
	r := try()
	assert.Contains(t, r.Stderr, marker+": No such file", "it runs on the node: %s", r)
	assert.Contains(t, check(), differs)
	assert.Contains(t, check(), "FAIL  plugstack: no plugstack.conf of /var/spool/slurmd/n1/conf-cache names spank_gojail.so: jobs run outside their jail")
}
