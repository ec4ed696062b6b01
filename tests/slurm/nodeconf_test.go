// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestNodeConf: gojail node-conf --check names what slurmctld lacks, until slurmctld has what node-conf prints.
func TestNodeConf(t *testing.T) {
	c := harness.Start(t, harness.Options{Jails: []string{"debian"}, Plugin: true})
	r := c.Root("gojail", "--node=n1", "node-conf")
	require.Zero(t, r.Code, r)
	features, found := strings.CutPrefix(strings.TrimSpace(r.Stdout), "Features=")
	require.True(t, found, r)
	assert.Contains(t, features, "gojail,jail-debian")

	r = c.Root("gojail", "--node=n1", "node-conf", "--check")
	assert.Equal(t, 1, r.Code, r)
	assert.Contains(t, r.Stdout, "n1: slurmctld does not know the feature jail-debian\n")
	require.Zero(t, c.Root("scontrol", "update", "NodeName=n1", "AvailableFeatures="+features).Code)
	r = c.Root("gojail", "--node=n1", "node-conf", "--check")
	assert.Zero(t, r.Code, r)
	assert.Empty(t, r.Stdout, r)
	job := c.Run(harness.Alice, "srun", "-w", "n1", "--constraint=gojail&jail-debian", "--jail=debian", "true")
	assert.Zero(t, job.Code, job)

	r = c.Root("gojail", "--node=n9", "node-conf", "--check")
	assert.Equal(t, 1, r.Code, r)
	assert.Contains(t, r.Stderr, "cannot ask slurmctld for the node n9", r)
}
