// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestStepOfManyTasks: 32 tasks on each node, each with a pid of its own in the job's namespace.
func TestStepOfManyTasks(t *testing.T) {
	c := sharedCluster(t)
	r := c.Run(harness.Alice, "srun", "-N2", "-n64", "-O", "--jail=debian", "sh", "-c", "echo $SLURMD_NODENAME $$ $SLURM_TASK_PID $(cat "+marker+")")
	require.Zero(t, r.Code, r)
	seen := map[string]int{}
	for line := range strings.Lines(r.Stdout) {
		f := strings.Fields(line)
		require.Len(t, f, 4, line)
		assert.Equal(t, f[1], f[2], "Slurm and the task agree on the pid: %s", line)
		assert.Equal(t, "debian", f[3])
		seen[f[0]+" "+f[1]]++
	}
	assert.Len(t, seen, 64)
}

// TestManyStepsAtOnce: 20 steps of one job start at the same time, in one PID namespace and one /tmp.
func TestManyStepsAtOnce(t *testing.T) {
	c := sharedCluster(t)
	step, id := allocate(t, c)
	requireOutput(t, "", step("mkdir -m 777 /tmp/here"))
	all := `readlink /proc/self/ns/pid; touch /tmp/here/$SLURM_STEP_ID; until [ $(ls /tmp/here | wc -l) = 20 ]; do sleep 0.1; done`
	var group sync.WaitGroup
	results := make([]harness.Result, 20)
	for i := range results {
		group.Go(func() {
			results[i] = c.Run(harness.Alice, "srun", "--overlap", "--jobid="+id, "--jail=debian", "sh", "-c", all)
		})
	}
	group.Wait()
	for _, r := range results {
		assert.Zero(t, r.Code, r)
		assert.Equal(t, results[0].Stdout, r.Stdout, "one namespace")
	}
}

// TestFilesThatSlurmSends: sbcast and srun --bcast write on the node. They reach a jail through
// a directory of the node that is mounted there; standard input reaches every node's /tmp.
func TestFilesThatSlurmSends(t *testing.T) {
	c := sharedCluster(t)
	t.Cleanup(func() {
		c.Root("rm", "-f", "/data/alice/sent", "/data/alice/program", "/home/alice/sent", "/tmp/gojail-sent")
	})
	removeFromJail(t, c, "payload")
	writeInJail(t, c, "/home/alice/payload", "of the job\n")
	send := func(path string, mount ...string) harness.Job {
		return c.Batch(harness.Alice, "sbcast payload "+path+"\nsrun --ntasks-per-node=1 cat "+path+" /srv/sent\n", append(mount, "--jail=debian", "-N2", "-n2")...)
	}
	for _, path := range []string{"/tmp/gojail-sent", "/home/alice/sent"} {
		job := send(path)
		assert.NotContains(t, job.Output, "of the job", job)
		assert.Contains(t, job.Output, path+": No such file or directory", job)
		assert.Equal(t, "of the job\n", readFile(c, path), "it is the node's")
	}
	job := send("/data/alice/sent", "--jail-mount=/data/alice:/srv")
	assert.Equal(t, 2, strings.Count(job.Output, "of the job\n"), job)
	job = c.Batch(harness.Alice, `srun --ntasks-per-node=1 sh -c 'cat >/tmp/sent' <payload
srun -n4 -O cat /tmp/sent`, "--jail=debian", "-N2", "-n2")
	assert.Equal(t, "COMPLETED "+strings.Repeat("of the job\n", 4), job.State+" "+job.Output, job)

	program := c.Run(harness.Alice, "srun", "--jail=debian", "-N2", "--bcast=/data/alice/program", "--jail-mount=/data/alice:/srv", "/bin/echo", "ran")
	assert.NotZero(t, program.Code, program)
	assert.Contains(t, program.Stderr, "gojail: --bcast: the program was copied to /data/alice/program on the node, where the jail has none; ", program)
	program = c.Run(harness.Alice, "srun", "--jail=debian", "-N2", "--jail-mount=/data/alice:/srv", "/srv/program", "ran")
	requireOutput(t, "ran\nran", program)
}

// ociConf is the oci.conf of an OCI runtime that only says where it is.
const ociConf = `RunTimeRun="/opt/oci/run %b"` + "\n" + `RunTimeQuery="/opt/oci/no"` + "\n" + `RunTimeKill="/opt/oci/no"` + "\n" + `RunTimeDelete="/opt/oci/no"` + "\n"

var ociFiles = map[string]string{
	"/opt/oci/run": "#!/bin/sh\ncat /etc/gojail-jail || echo node\ntest -s $1/config.json\n",
	"/opt/oci/no":  "#!/bin/sh\nexit 0\n",
}

// TestOCIContainer: srun --container works on the node. A jail does not have the copy of the bundle that Slurm makes there, and
// would start the runtime: the step is refused, wherever oci.conf puts that copy. A step beside it is not.
func TestOCIContainer(t *testing.T) {
	options := jailed
	options.Files = ociFiles
	options.SlurmConf = nil
	c := harness.Start(t, options)
	const bundle = `{"ociVersion": "1.0.0", "process": {"args": ["true"], "cwd": "/"}, "root": {"path": "rootfs"}, "mounts": [], "linux": {}}`
	for _, home := range []string{"/home/alice/", jailHome} {
		require.NoError(t, os.MkdirAll(c.Path(home+"bundle/rootfs/tmp"), 0o755))
		replaceFile(t, c.Path(home+"bundle/config.json"), bundle)
		require.Zero(t, c.Root("chown", "-R", "alice:", home+"bundle").Code)
	}
	run := c.Path("/srv/jails/debian/opt/oci")
	require.NoError(t, os.MkdirAll(run, 0o755))
	replaceFile(t, run+"/run", ociFiles["/opt/oci/run"])
	require.Zero(t, c.Root("install", "-d", "-o", "alice", "/srv/oci", "/srv/oci/of-all").Code)

	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--container=/home/alice/bundle", "cat", marker))
	for _, path := range []string{"", "/srv/oci/%u-%j-%s", "/srv/oci/of-all", "/tmp/oci-%j-%t", "%m/elsewhere-%j-%s"} {
		if strings.Contains(path, "%m") && harness.Version() < "23.11" {
			continue // it is not replaced
		}
		t.Run(path, func(t *testing.T) {
			conf := ociConf
			if path != "" {
				conf += "ContainerPath=" + path + "\n"
			}
			replaceFile(t, c.Path("/etc/slurm/oci.conf"), conf)
			requireOutput(t, "node", c.Run(harness.Alice, "srun", "-wn1", "--container=/home/alice/bundle", "true"))
			r := c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--container=/home/alice/bundle", "true")
			requireRefused(t, "--container and --jail cannot be combined", r)
			assert.Empty(t, r.Stdout)
			requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
			job := c.Batch(harness.Alice, "echo ran", "--jail=debian", "--container=/home/alice/bundle", "--output=/home/alice/oci.out", "--open-mode=truncate")
			assert.Equal(t, "FAILED", job.State, job)
			assert.Contains(t, job.Output, "--container and --jail cannot be combined", job)
			assert.NotContains(t, job.Output, "ran", job)
			assert.Equal(t, "idle", waitForState(c, "n1"), c.Drained())
		})
	}
}
