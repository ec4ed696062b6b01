// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestOnlyTheJobsDevices: what a job has not been given, Slurm's device filter
// refuses, in a jail and to root as well: the devices controller of cgroup v1, a BPF
// program with v2. The GPUs of these nodes are /dev/zero and /dev/full, which every
// jail has and every user may open.
func TestOnlyTheJobsDevices(t *testing.T) {
	options := withGPUs("Name=gpu File=/dev/zero\nName=gpu File=/dev/full\n")
	options.Constrain = true
	c := harness.Start(t, options)
	const open = "for d in zero full null; do head -c0 /dev/$d && echo $d; done; exit 0"
	opens := func(user, want string, args ...string) {
		r := c.Run(user, append(append([]string{"srun", "-wn1"}, args...), "sh", "-c", open)...)
		require.Zero(t, r.Code, r)
		assert.Equal(t, want, strings.Join(strings.Fields(r.Stdout), " "), "%s %v: %s", user, args, r)
		refused := 3 - len(strings.Fields(want))
		assert.Equal(t, refused, strings.Count(r.Stderr, "Operation not permitted"), "%s %v: %s", user, args, r)
	}
	for _, user := range []string{harness.Alice, "root"} {
		for _, jail := range []string{"none", "debian"} {
			opens(user, "null", "--jail="+jail)
			opens(user, "zero null", "--jail="+jail, "--gres=gpu:1")
			opens(user, "zero full null", "--jail="+jail, "--gres=gpu:2")
		}
	}
	script := "#!/bin/sh\n" + strings.Replace(open, "; exit 0", "", 1) + "\nsrun sh -c '" + open + "'\n"
	j := c.ListenToJournal(t)
	job := c.Batch(harness.Alice, script, "--jail=debian", "--gres=gpu:1", "--chdir=/tmp", "--output=/home/alice/devices.out")
	want := "memory_peak=(-|[1-9][0-9]*)$"
	if c.Root("test", "-e", "/sys/fs/cgroup/cgroup.controllers").Code == 0 {
		want = "memory_peak=[1-9][0-9]*$" // with v2 each controller is there
	}
	ended := j.Lines(job.ID, "event=ended")
	assert.Regexp(t, want, ended[len(ended)-1])
	assert.Equal(t, "COMPLETED", job.State, "%v", job)
	out := c.Run(harness.Alice, "srun", "--jail=debian", "cat", "/home/alice/devices.out").Stdout
	assert.Equal(t, 2, strings.Count(out, "zero\n"), out)
	assert.NotContains(t, out, "full\n")
	for _, node := range harness.Nodes {
		assert.Equal(t, "idle", waitForState(c, node), c.Drained())
	}
}

// withGPUs returns a cluster whose nodes have two GPUs each, as gres.conf names them.
func withGPUs(gres string) harness.Options {
	options := jailed
	options.Files = maps.Clone(jailed.Files)
	options.Files["/etc/slurm/gres.conf"] = gres
	options.SlurmConf = maps.Clone(jailed.SlurmConf)
	maps.Copy(options.SlurmConf, map[string]string{
		"GresTypes": "gpu",
		"NodeName": "n1 NodeAddr=" + harness.Address + " Port=6818 CPUs=2 Gres=gpu:2 State=UNKNOWN\n" +
			"NodeName=n2 NodeAddr=" + harness.Address + " Port=6819 CPUs=2 Gres=gpu:2 State=UNKNOWN",
	})
	return options
}

// TestOnlyTheJobsGPUsAreThere, by the index that Slurm allocated and not by what a
// user writes into the environment. The GPUs of these nodes are consoles, and
// gres.conf has them against the order of their names.
func TestOnlyTheJobsGPUsAreThere(t *testing.T) {
	options := withGPUs("NodeName=n[1-2] Name=gpu File=/dev/tty62\nNodeName=n[1-2] Name=gpu File=/dev/tty61\nNodeName=other Name=gpu File=/dev/tty60\n")
	options.Config = strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\ndevices = [\"/dev/tty6[0-2]\"]\n", 1)
	c := harness.Start(t, options)
	const list = "cd /dev; echo $(ls -d tty6*)"
	in := func(args ...string) harness.Result {
		return c.Run(harness.Alice, append(append([]string{"srun", "-Q", "-wn1", "--jail=debian"}, args...), "sh", "-c", list)...)
	}
	requireOutput(t, "tty60", in())
	requireOutput(t, "tty60 tty62", in("--gres=gpu:1"))
	requireOutput(t, "tty60 tty61 tty62", in("--gres=gpu:2"))
	forged := c.Do(harness.Command{User: harness.Alice, Env: []string{"SLURM_STEP_GPUS=0,1", "SLURM_JOB_GPUS=0,1", "CUDA_VISIBLE_DEVICES=0,1"},
		Args: []string{"srun", "-Q", "-wn1", "--jail=debian", "sh", "-c", list}})
	requireOutput(t, "tty60", forged)
	job := c.Batch(harness.Alice, "#!/bin/sh\n"+list+"\nstat -c '%t:%T %a' /dev/tty62; stat -c %F /dev/null /dev/pts /dev/shm /dev/ptmx\n"+
		"srun --gres=none sh -c '"+list+"'\n", "--jail=debian", "--gres=gpu:1", "-wn1")
	host := c.Root("stat", "-c", "%t:%T %a", "/dev/tty62").Stdout
	assert.Equal(t, "COMPLETED tty60 tty62\n"+host+"character special file\ndirectory\ndirectory\nsymbolic link\ntty60 tty62\n", job.State+" "+job.Output, job)
	// A later step has what is there already, and one that is not.
	steps := c.Do(harness.Command{User: harness.Alice, Env: []string{"LIST=" + list}, Args: []string{"salloc", "-Q", "-wn1", "--gres=gpu:2", "sh", "-c",
		`for gpus in 1 2 2; do srun -Q --jail=debian --gres=gpu:$gpus sh -c "$LIST"; done`}})
	requireOutput(t, "tty60 tty62\ntty60 tty61 tty62\ntty60 tty61 tty62", steps)
	// What the job has is in the node's metrics, once, and not what a user writes into the environment.
	running := c.Do(harness.Command{User: harness.Alice, Env: []string{"SLURM_JOB_GPUS=0,1"}, Args: []string{"sbatch", "--parsable", "--jail=debian", "-wn1", "--gres=gpu:1",
		"--wrap=touch begun; srun true; srun true; until [ -e end ]; do sleep 0.1; done; rm begun end"}})
	require.Zero(t, running.Code, running)
	home := c.Path("/srv/jails/debian/home/alice")
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Stat(home + "/begun"); return err == nil }))
	text := writeMetrics(t, c, "n1")
	nodes := c.Root("cat", "/run/gojail/n1/jobs/"+strings.TrimSpace(running.Stdout)+"/.gpu-nodes").Stdout
	assert.Equal(t, "/dev/tty62\n", nodes, "noted once for all steps, for what is told of the job's end")
	require.NoError(t, os.WriteFile(home+"/end", nil, 0o644))
	assert.Contains(t, text, `gojail_job_gpu{GPU_I_ID="",UUID="",device="tty62",gpu="",jail="debian",job_id="`+strings.TrimSpace(running.Stdout)+`",node="n1",pci_bus_id="",user="alice"} 1`)
	assert.Equal(t, 1, strings.Count(text, "\ngojail_job_gpu{"), text)
	// With --jail-net, which a cluster without cards refuses, the devices of rails have a file system in this /dev.
	path := c.Path("/run/gojail/n1/site")
	site := strings.ReplaceAll(readFile(c, "/run/gojail/n1/site"), "mount in,mkdir,net tmpfs", "mount in,mkdir tmpfs")
	require.NoError(t, os.WriteFile(path, []byte(site), 0o600))
	requireOutput(t, "tty60 tty61 tty62\n/dev/infiniband", c.Run(harness.Alice,
		"srun", "-Q", "-wn1", "--jail=debian", "--gres=gpu:2", "sh", "-c", list+"; stat -c %m /dev/infiniband"))
	for _, node := range harness.Nodes {
		assert.Equal(t, "idle", waitForState(c, node), c.Drained())
	}
}
