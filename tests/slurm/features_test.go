// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// feature is something of Slurm's that touches namespaces or the hooks' processes.
type feature struct {
	name    string
	since   string // first release that has it; "" is no limit
	plugin  string // of Slurm's that it is, if not every release has it
	conf    map[string]string
	files   map[string]string
	check   string // what gojail check says of it; a failed check: it is refused
	refused bool
	private bool // steps are in mounts of the job's own, with /data
}

// isThere reports whether the Slurm of the clusters has the feature.
func (f *feature) isThere(t *testing.T) bool {
	t.Helper()
	return f.since <= harness.Version() && (f.plugin == "" || harness.HasPlugin(t, f.plugin))
}

const oldContainer = "AutoBasePath=true\nBasePath=/var/lib/slurm/container\n"

// withNamespaceConf returns the namespace.yaml of namespace/linux, with further lines.
func withNamespaceConf(more string) map[string]string {
	return map[string]string{"/etc/slurm/namespace.yaml": "defaults:\n  base_path: /var/lib/slurm/namespace\n  auto_base_path: true\n" + more}
}

var features = []feature{
	{name: "PrologFlags=Contain", conf: map[string]string{"PrologFlags": "Contain"}},
	{name: "slurmstepd_memlock", conf: map[string]string{"LaunchParameters": "slurmstepd_memlock"}},
	{name: "slurmstepd_memlock_all", conf: map[string]string{"LaunchParameters": "slurmstepd_memlock_all"}},
	{name: "UsePAM=0", conf: map[string]string{"UsePAM": "0"}},
	{name: "contain_spank", since: "24.05", conf: map[string]string{"SlurmdParameters": "config_overrides,contain_spank"}},
	{name: "job_container/tmpfs", plugin: "job_container_tmpfs",
		conf:  map[string]string{"JobContainerType": "job_container/tmpfs", "PrologFlags": "Contain"},
		files: map[string]string{"/etc/slurm/job_container.conf": oldContainer}, check: "EntireStepInNS=true", refused: true},
	{name: "EntireStepInNS", since: "24.11", plugin: "job_container_tmpfs",
		conf:  map[string]string{"JobContainerType": "job_container/tmpfs", "PrologFlags": "Contain"},
		files: map[string]string{"/etc/slurm/job_container.conf": oldContainer + "EntireStepInNS=true\nDirs=/tmp,/dev/shm,/data\n"}, private: true},
	{name: "namespace/linux", plugin: "namespace_linux",
		conf:  map[string]string{"NamespaceType": "namespace/linux", "PrologFlags": "Contain"},
		files: withNamespaceConf("  dirs: /tmp,/dev/shm,/data\n"), private: true},
	{name: "namespace/linux with PIDs", plugin: "namespace_linux",
		conf:  map[string]string{"NamespaceType": "namespace/linux", "PrologFlags": "Contain"},
		files: withNamespaceConf("  clone_ns_flags: [CLONE_NEWPID]\n")},
}

// TestFeatures: a step with each feature of Slurm is in its jail in every respect,
// a fault is the job's alone, and no node drains.
func TestFeatures(t *testing.T) {
	for _, f := range features {
		if !f.isThere(t) {
			continue // "-" in the table of releases
		}
		t.Run(f.name, func(t *testing.T) {
			if f.name == "slurmstepd_memlock_all" && !harness.MayLock() {
				t.Skip("needs CAP_SYS_RESOURCE: this slurmstepd ends below a limit of 8 MiB of locked memory, with gojail or without")
			}
			options := jailed
			options.OneCPU = true
			options.SlurmConf = maps.Clone(jailed.SlurmConf)
			maps.Copy(options.SlurmConf, f.conf)
			options.Files = maps.Clone(jailed.Files)
			maps.Copy(options.Files, f.files)
			if f.private {
				options.Config = strings.Replace(harness.DefaultConfig, "[[jail.debian.user_mounts]]\n",
					"[[jail.debian.mounts]]\ndestination = \"/data\"\nsource = \"/data\"\noptions = [\"rbind\"]\n[[jail.debian.user_mounts]]\n", 1)
			}
			c := harness.Start(t, options)
			r := c.Gojail("n1", "check")
			assert.Contains(t, r.Stdout+r.Stderr, f.check)
			assert.Equal(t, f.refused, r.Code != 0, r)
			if !f.refused {
				checkFeature(t, c)
			}
			if f.private {
				checkNodesData(t, c)
			}
		})
	}
}

// checkNodesData requires that a template which a step has made is of the node's mounts, not of those that its job alone has.
func checkNodesData(t *testing.T, c *harness.Cluster) {
	t.Helper()
	const file = "/data/alice/of-the-node"
	writeOnNode(t, c, file, "of the node\n")
	require.Zero(t, c.Gojail("n1", "reload", "debian").Code)
	r := c.Run(harness.Alice, "srun", "-wn1", "--jail=none", "cat", file)
	assert.NotZero(t, r.Code, "control: the job has a directory of its own there: %v", r)
	requireOutput(t, "of the node", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", file))
}

// checkFeature runs steps and jobs in the jail on a cluster with one of Slurm's features.
func checkFeature(t *testing.T, c *harness.Cluster) {
	t.Helper()
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "--jail=debian", "cat", marker))
	r := c.Do(harness.Command{User: harness.Alice, Env: []string{"SITE_EPILOG=/home/alice/epilog.out"},
		Args: []string{"srun", "--jail=debian", "-n2", "sh", "-c", "echo $$ >/tmp/of-the-job"}})
	require.Zero(t, r.Code, r)
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "--jail=debian", "cat", "/home/alice/epilog.out"))

	require.Zero(t, c.Run(harness.Alice, "srun", "--jail=debian", "mkdir", "/home/alice/only").Code)
	job := c.Batch(harness.Alice, "#!/bin/sh\ncat "+marker+"\nsrun cat "+marker+"\n", "--jail=debian",
		"--chdir=/home/alice/only", "--output=/home/alice/only/out")
	assert.Equal(t, "COMPLETED", job.State, "%v", job)
	requireOutput(t, "debian\ndebian", c.Run(harness.Alice, "srun", "--jail=debian", "cat", "/home/alice/only/out"))

	r = c.Run(harness.Alice, "srun", "--jail=nosuch", "echo", "ran")
	assert.NotZero(t, r.Code)
	assert.NotContains(t, r.Stdout, "ran")
	assert.Contains(t, r.Stderr, "nosuch")
	// Slurm gives up between two hooks: the node must not stay in the stage. (22.05's srun exits 0.)
	r = c.Run(harness.Alice, "srun", "--jail=debian", "--output=/nosuch/file-%t", "echo", "ran")
	assert.NotContains(t, r.Stdout, "ran")
	for _, node := range harness.Nodes {
		assert.Equal(t, "idle", waitForState(c, node), c.Drained())
	}
}
