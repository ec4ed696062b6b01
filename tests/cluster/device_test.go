// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/cluster"
)

// TestOnlyTheJobsDevices: what a job has not been given, Slurm's device filter
// refuses, in a jail and to root as well: the devices controller of cgroup v1, a BPF
// program with v2. The GPUs of these nodes are /dev/zero and /dev/full, which every
// jail has and every user may open.
func TestOnlyTheJobsDevices(t *testing.T) {
	options := jailed
	options.Constrain = true
	options.Files = maps.Clone(jailed.Files)
	options.Files["/etc/slurm/gres.conf"] = "Name=gpu File=/dev/zero\nName=gpu File=/dev/full\n"
	options.SlurmConf = maps.Clone(jailed.SlurmConf)
	maps.Copy(options.SlurmConf, map[string]string{
		"GresTypes": "gpu",
		"NodeName": "n1 NodeAddr=" + cluster.Address + " Port=6818 CPUs=2 Gres=gpu:2 State=UNKNOWN\n" +
			"NodeName=n2 NodeAddr=" + cluster.Address + " Port=6819 CPUs=2 Gres=gpu:2 State=UNKNOWN",
	})
	c := cluster.Start(t, options)
	const open = "for d in zero full null; do head -c0 /dev/$d && echo $d; done; exit 0"
	opens := func(user, want string, args ...string) {
		r := c.Run(user, append(append([]string{"srun", "-wn1"}, args...), "sh", "-c", open)...)
		require.Zero(t, r.Code, r)
		assert.Equal(t, want, strings.Join(strings.Fields(r.Stdout), " "), "%s %v: %s", user, args, r)
		refused := 3 - len(strings.Fields(want))
		assert.Equal(t, refused, strings.Count(r.Stderr, "Operation not permitted"), "%s %v: %s", user, args, r)
	}
	for _, user := range []string{cluster.Alice, "root"} {
		for _, jail := range []string{"none", "debian"} {
			opens(user, "null", "--jail="+jail)
			opens(user, "zero null", "--jail="+jail, "--gres=gpu:1")
			opens(user, "zero full null", "--jail="+jail, "--gres=gpu:2")
		}
	}
	script := "#!/bin/sh\n" + strings.Replace(open, "; exit 0", "", 1) + "\nsrun sh -c '" + open + "'\n"
	job := c.Batch(cluster.Alice, script, "--jail=debian", "--gres=gpu:1", "--chdir=/tmp", "--output=/home/alice/devices.out")
	assert.Equal(t, "COMPLETED", job.State, "%v", job)
	out := c.Run(cluster.Alice, "srun", "--jail=debian", "cat", "/home/alice/devices.out").Stdout
	assert.Equal(t, 2, strings.Count(out, "zero\n"), out)
	assert.NotContains(t, out, "full\n")
	for _, node := range cluster.Nodes {
		assert.Equal(t, "idle", waitState(c, node), c.Drained())
	}
}
