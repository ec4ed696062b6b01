// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestNetworkIsRefused: where there is nothing to attach, no task runs. What can be
// attached is tested in the VM, which has cards with VFs.
func TestNetworkIsRefused(t *testing.T) {
	c := sharedCluster(t)
	for _, r := range []struct {
		args []string
		want string
	}{
		{[]string{"--jail=debian", "--jail-net=../x"}, "--jail-net=../x is not a label of rails"},
		{[]string{"--jail=debian", "--jail-net=ai"}, "--jail-net=ai: this node has no /etc/gojail/network.toml, hence no rails"},
		{[]string{"--jail=none", "--jail-net=ai"}, "--jail-net needs a jail; give --jail=NAME too"},
	} {
		got := c.Run(harness.Alice, append(append([]string{"srun", "-wn1"}, r.args...), "echo", "ran")...)
		assert.NotZero(t, got.Code, got)
		assert.NotContains(t, got.Stdout, "ran")
		assert.Contains(t, findGojailLine(got.Stderr), r.want)
	}
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-net=none", "cat", marker))
	r := c.Do(harness.Command{User: harness.Alice, Env: []string{"SLURM_JAIL_NET=ai"}, Args: []string{"srun", "-wn1", "--jail=debian", "echo", "ran"}})
	assert.NotContains(t, r.Stdout, "ran")
	r = c.Do(harness.Command{User: harness.Alice, Env: []string{"SLURM_JAIL_NET=ai"}, Args: []string{"srun", "-wn1", "--jail=debian", "--jail-net=none", "cat", marker}})
	requireOutput(t, "debian", r)
	assert.Equal(t, "idle", waitForState(c, "n1"), c.Drained())
	r = c.Gojail("n1", "sweep")
	assert.Zero(t, r.Code, r)
	assert.Empty(t, r.Stderr, "what a user asked for is no fault of the node's")
}

// TestDefaultNetworkIsAsked: network.toml may say that jobs have a network; a wrong
// one, or one that comes later, is seen by the next step.
func TestDefaultNetworkIsAsked(t *testing.T) {
	c := sharedCluster(t)
	path := c.Path("/etc/gojail/network.toml")
	t.Cleanup(func() { require.NoError(t, os.Remove(path)) })
	step := func() harness.Result {
		return c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", task)
	}
	require.NoError(t, os.WriteFile(path, []byte("default = [\n"), 0o644))
	requireRefused(t, "network.toml: line 1", step())
	require.NoError(t, os.WriteFile(path, []byte("[[policy]]\nname = \"p\"\nnic = { pf = [\"nosuch0\"] }\nvfs = 1\n[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/24\"\nnodes = \"n[1-2]\"\nper_node = 1\n"+
		"[[rail]]\nname = \"r\"\npolicy = \"p\"\npools = [\"a\"]\n"), 0o644))
	requireOutput(t, "ran in debian", step())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append([]byte("default = \"r\"\n"), text...), 0o644))
	r := step()
	assert.NotContains(t, r.Stdout, "ran in", "there is no card: %s", r)
	assert.Contains(t, r.Stderr, "rail r: the node has no VFs for it; run: gojail vf apply", r)
	requireOutput(t, "ran in debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-net=none", "sh", "-c", task))
	assert.Equal(t, "idle", waitForState(c, "n1"), c.Drained())
}
