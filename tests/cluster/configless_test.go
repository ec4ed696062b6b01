// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/cluster"
)

// TestConfigless: nodes and jails without /etc/slurm. slurmctld sends slurm.conf and
// plugstack.conf; srun in a jail finds both, however it looks for them.
func TestConfigless(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Plugin: true, Jails: []string{"debian", "other"}, NoConf: true})
	missing(t, c, "/etc/slurm")
	missing(t, c, "/srv/jails/debian/etc/slurm")
	for _, node := range cluster.Nodes {
		prints(t, "debian", c.Run(cluster.Alice, "srun", "-w"+node, "--jail=debian", "cat", marker))
		r := c.Gojail(node, "check")
		assert.Contains(t, r.Stdout, "OK    plugstack: "+cluster.Prefix+"/lib/gojail/spank_gojail.so is required", r)
		assert.NotContains(t, r.Stdout, "FAIL", r)
	}
	const steps = "cat " + marker + "; srun -Q cat " + marker + "; env -u SLURM_CONF srun -Q --jail=other cat " + marker + "; srun -Q sinfo -ho %P; env -u SLURM_CONF sinfo -ho %P\n"
	for _, node := range cluster.Nodes {
		job := c.Batch(cluster.Alice, steps, "--jail=debian", "-w"+node)
		assert.Equal(t, "COMPLETED debian\ndebian\nother\nmain*\nmain*\n", job.State+" "+job.Output, job)
	}
	// In a sandbox that no batch script is for.
	prints(t, "debian\nother", c.Run(cluster.Alice, "srun", "--jail=debian", "sh", "-c", "srun --overlap cat "+marker+"; srun --overlap --jail=other cat "+marker))

	// What the administrator changes reaches jails, also those of tasks that are running.
	step, _ := allocation(t, c)
	running := make(chan cluster.Result)
	go func() {
		running <- step("echo running >/home/alice/state; until grep ^PartitionName=extra $SLURM_CONF; do sleep 0.2; done")
	}()
	require.True(t, cluster.Poll(cluster.Timeout, func() bool { return read(c, jailHome+"state") == "running\n" }))
	const conf = "/srv/slurmctld/slurm.conf"
	write(t, c.Path(conf), read(c, conf)+"PartitionName=extra Nodes=n2 State=UP\n")
	r := c.Root("scontrol", "reconfigure")
	require.Zero(t, r.Code, r)
	prints(t, "PartitionName=extra Nodes=n2 State=UP", <-running)
}
