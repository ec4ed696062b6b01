// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRemoveStale: the clusters of processes that are gone are removed, and no other, however long a busy machine takes to make one.
func TestRemoveStale(t *testing.T) {
	all := t.TempDir()
	for name, owner := range map[string]func(string) error{
		"test-made":    func(file string) error { return recordProcess(file, os.Getpid()) },
		"test-orphan":  func(file string) error { return os.WriteFile(file, []byte("1 7\n"), 0o644) },
		"test-damaged": func(file string) error { return os.WriteFile(file, nil, 0o644) },
		"test-old":     func(string) error { return nil },
		"test-new":     nil,
		"named":        func(string) error { return nil },
	} {
		dir := filepath.Join(all, name)
		require.NoError(t, os.Mkdir(dir, 0o755))
		if owner != nil {
			require.NoError(t, owner(filepath.Join(dir, ownerFile)))
			old := time.Now().Add(-2 * time.Hour)
			require.NoError(t, os.Chtimes(dir, old, old))
		}
	}
	removeStale(all)
	var left []string
	entries, err := os.ReadDir(all)
	require.NoError(t, err)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	assert.Equal(t, []string{"named", "test-made", "test-new"}, left)
}

// TestSlurmOfOneNode: a Slurm that cannot have two nodes on one machine is told before a test fails now and then.
func TestSlurmOfOneNode(t *testing.T) {
	const config = "Configuration data as of 2026-11-28T21:00:00\nMpiParams               = (null)\nNEXT_JOB_ID             = 1\n"
	for _, yes := range []string{"Yes", "yes"} { // 22.05; 24.11
		assert.NoError(t, checkSeveralSlurmd(config+"MULTIPLE_SLURMD         = "+yes+"\n"))
	}
	for _, other := range []string{"", config, config + "MULTIPLE_SLURMD = No\n", "# MULTIPLE_SLURMD\n"} {
		assert.ErrorContains(t, checkSeveralSlurmd(other), "without --enable-multiple-slurmd")
	}
}

// TestSecondNode: a command names the second node, or asks for two; its text elsewhere may look so.
func TestSecondNode(t *testing.T) {
	for _, words := range []string{"srun -wn2 true", "srun -w n2 true", "srun -w n1,n2", "srun -N2 true", "srun -N 2 true", "sbatch --nodes=2", "srun -w n[1-2]",
		"gojail --node=n2 check", "/usr/sbin/slurmd -N n2", "#SBATCH -N2\n", "#!/bin/sh\nsrun -N2 true\n"} {
		assert.Regexp(t, secondNode, words)
	}
	for _, words := range []string{"srun true", "srun -n2 true", "srun -wn1 -N1 -n2 true", "srun --ntasks=2 -N 1", "cat /tmp/xn2", "gojail --node=n1 check"} {
		assert.NotRegexp(t, secondNode, words)
	}
}

// TestPrefixOfAnInstallation: what tests/releases/installed wrote is read, and a prefix outside /usr is mounted in the machine, read-only.
func TestPrefixOfAnInstallation(t *testing.T) {
	root := t.TempDir()
	assert.Empty(t, readInstallation(root))
	assert.Empty(t, listPrefixMounts(root))
	for prefix, mounts := range map[string][]mountCall{
		"/usr": nil, "/usr/local": nil,
		"/opt/slurm": {{root + "/opt/slurm", "opt/slurm", "", bind, ""}, {"", "opt/slurm", "", remountReadOnly, ""}},
	} {
		text := "prefix=" + prefix + "\nplugins=" + prefix + "/lib/slurm\nauth=munge\nseveral=no\n"
		require.NoError(t, os.WriteFile(filepath.Join(root, "slurm-tree"), []byte(text), 0o644))
		assert.Equal(t, installation{prefix, prefix + "/lib/slurm", "munge", "no"}, readInstallation(root))
		assert.Equal(t, mounts, listPrefixMounts(root))
	}
}
