// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/cluster"
)

// TestPMIx: tasks in a jail meet through Slurm's PMIx server, on both nodes and
// in one step after another; its directory is in the jail as long as the step.
func TestPMIx(t *testing.T) {
	options := jailed
	// PMIx is a part of the jail's software: this jail has the node's.
	options.Config = strings.Replace(cluster.DefaultConfig, "[jail.other]",
		"[[jail.debian.mounts]]\ndestination = \"/usr\"\nsource = \"/usr\"\noptions = [\"rbind\", \"ro\"]\n[jail.other]", 1)
	c := cluster.Start(t, options)
	if !strings.Contains(c.Run(cluster.Alice, "srun", "--mpi=list").String(), "pmix") {
		return // "-" in the table of releases: Debian's 26.05 has no mpi/pmix
	}
	program := filepath.Join(t.TempDir(), "pmix")
	out, err := exec.Command("gcc", "-Wall", "-Werror", "-I/usr/lib/x86_64-linux-gnu/pmix2/include", "-o", program, "testdata/pmix.c", "-ldl").CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(program)
	require.NoError(t, err)
	write(t, c.Path("/srv/jails/debian/home/alice/pmix"), string(text))
	require.NoError(t, os.Chmod(c.Path("/srv/jails/debian/home/alice/pmix"), 0o755))
	for range 2 {
		r := c.Run(cluster.Alice, "srun", "-N2", "-n4", "--mpi=pmix", "--jail=debian", "/home/alice/pmix")
		require.Zero(t, r.Code, r)
		assert.NotContains(t, r.Stderr, "PMIX", "what it prints where it does without its files")
		ranks := strings.Split(strings.TrimSpace(r.Stdout), "\n")
		slices.Sort(ranks)
		assert.Equal(t, []string{"rank 0 of 4", "rank 1 of 4", "rank 2 of 4", "rank 3 of 4"}, ranks, r)
	}
	job := c.Batch(cluster.Alice, "#!/bin/sh\nfor i in 1 2; do srun --mpi=pmix /home/alice/pmix; done\n"+
		"srun ls -A /var/spool/slurmd/n1\n", "--jail=debian", "-wn1", "-n2", "--chdir=/tmp", "--output=/home/alice/pmix.out")
	assert.Equal(t, "COMPLETED", job.State, "%v", job)
	text, err = os.ReadFile(c.Path("/srv/jails/debian/home/alice/pmix.out"))
	require.NoError(t, err)
	assert.Equal(t, 4, strings.Count(string(text), "rank "), string(text))
	assert.NotContains(t, string(text), "pmix.", "the directories of steps that are over")
	r := c.Run(cluster.Alice, "srun", "-N2", "--mpi=pmi2", "--jail=debian", "cat", marker)
	prints(t, "debian\ndebian", r)
}
