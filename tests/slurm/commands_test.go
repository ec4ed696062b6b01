// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"debug/elf"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestEveryCommandOfSlurm: a jail with Slurm has each of the node's client commands, in the PATH of its users.
func TestEveryCommandOfSlurm(t *testing.T) {
	c := sharedCluster(t)
	names := listSlurmPrograms(t, c)
	require.Contains(t, names, "sacctmgr")
	require.Contains(t, names, "sprio")
	r := c.Run(harness.Alice, "srun", "--jail=debian", "sh", "-c",
		"for name in "+strings.Join(names, " ")+"; do $name --version >/dev/null 2>&1 </dev/null || echo $name $?; done")
	require.Zero(t, r.Code, r)
	for line := range strings.Lines(r.Stdout) {
		assert.NotRegexp(t, " 12[67]$", strings.TrimSpace(line), "it is missing, or lacks a library")
	}
}

// listSlurmPrograms returns the programs in the node's /usr/bin that are linked with Slurm's library.
func listSlurmPrograms(t *testing.T, c *harness.Cluster) []string {
	t.Helper()
	paths, err := filepath.Glob(c.Path("/usr/bin/s*"))
	require.NoError(t, err)
	var names []string
	for _, path := range paths {
		f, err := elf.Open(path)
		if err != nil {
			continue
		}
		libraries, _ := f.ImportedLibraries()
		f.Close()
		if slices.ContainsFunc(libraries, func(name string) bool { return strings.HasPrefix(name, "libslurm") }) {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}
