// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/tests/cluster"
)

// TestNetworkIsRefused: where there is nothing to attach, no task runs. What can be
// attached is tested in the VM, which has cards with VFs.
func TestNetworkIsRefused(t *testing.T) {
	c := shared(t)
	for _, r := range []struct {
		args []string
		want string
	}{
		{[]string{"--jail=debian", "--jail-net=../x"}, "--jail-net=../x is no label of rails"},
		{[]string{"--jail=debian", "--jail-net=ai"}, "--jail-net=ai: this node has no /etc/gojail/network.toml, hence no rails"},
		{[]string{"--jail=none", "--jail-net=ai"}, "--jail-net needs a jail; give --jail=NAME too"},
	} {
		got := c.Run(cluster.Alice, append(append([]string{"srun", "-wn1"}, r.args...), "echo", "ran")...)
		assert.NotZero(t, got.Code, got)
		assert.NotContains(t, got.Stdout, "ran")
		assert.Contains(t, oneLine(got.Stderr), r.want)
	}
	prints(t, "debian", c.Run(cluster.Alice, "srun", "-wn1", "--jail=debian", "--jail-net=none", "cat", marker))
	r := c.Do(cluster.Command{User: cluster.Alice, Env: []string{"SLURM_JAIL_NET=ai"}, Args: []string{"srun", "-wn1", "--jail=debian", "echo", "ran"}})
	assert.NotContains(t, r.Stdout, "ran")
	r = c.Do(cluster.Command{User: cluster.Alice, Env: []string{"SLURM_JAIL_NET=ai"}, Args: []string{"srun", "-wn1", "--jail=debian", "--jail-net=none", "cat", marker}})
	prints(t, "debian", r)
	assert.Equal(t, "idle", waitState(c, "n1"), c.Drained())
}
