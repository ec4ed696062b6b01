// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const examplePath = "../../network.toml.example"

// exampleWant is the configuration of the example on gpu07, a line for each table.
const exampleWant = `
default none
policy left on gpu[01-64]: {15b3  [0000:86:00.0] []} 8 VFs eth mtu 9000 vlan 0 rdma exclusive
policy right on gpu[01-64]: {15b3  [0000:af:00.0] []} 8 VFs eth mtu 9000 vlan 0 rdma exclusive
pool left: 10.1.0.0/22 [10.1.0.16-10.1.3.239] gateway 10.1.0.1, 992 addresses, 64 x 8
pool right: 10.2.0.0/22 [10.2.0.2-10.2.3.254] gateway 10.2.0.1, 1021 addresses, 64 x 8
pool control: 10.0.0.0/20 [10.0.8.0-10.0.15.254] gateway 10.0.0.1, 2047 addresses, 64 x 16
rail rail0: left [rail0 compute] nic:rail0 table 101
rail rail1: right [rail1 compute] nic:rail1 table 102
control control
`

func TestExample(t *testing.T) {
	text, err := os.ReadFile(examplePath)
	require.NoError(t, err)
	c, err := Parse(string(text), "gpu07")
	require.NoError(t, err)
	assert.Empty(t, c.ListWarnings())

	var b strings.Builder
	fmt.Fprintln(&b, "\ndefault", c.Default)
	for _, p := range c.Policies {
		fmt.Fprintf(&b, "policy %s on %s: %v %d VFs %s mtu %d vlan %d rdma %s\n", p.Name, p.Nodes, p.NIC, p.VFs, p.Link, p.MTU, p.VLAN, p.RDMA)
	}
	for _, p := range c.Pools {
		fmt.Fprintf(&b, "pool %s: %s %v gateway %s, %d addresses, %d x %d\n", p.Name, p.Subnet, p.ListUsable(), p.Gateway, p.CountAddresses(), p.Nodes.Len(), p.PerNode)
	}
	for _, r := range c.Rails {
		fmt.Fprintf(&b, "rail %s: %s %v %s table %d\n", r.Name, r.Policy.Name, r.Labels, r.GRES, r.Table)
	}
	fmt.Fprintln(&b, "control", c.Control.Pool.Name)
	assert.Equal(t, exampleWant, b.String())
}

// TestExampleWithAllKeys requires that keys that are commented out are valid, and that those called defaults are the defaults.
func TestExampleWithAllKeys(t *testing.T) {
	text, err := os.ReadFile(examplePath)
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.TrimPrefix(line, "#: "))
	}
	c, err := Parse(strings.Join(lines, ""), "ib03")
	require.NoError(t, err)
	assert.Empty(t, c.ListWarnings())
	rails, err := c.FindRails("compute")
	require.NoError(t, err)
	require.Len(t, rails, 1)
	assert.Equal(t, "ib0", rails[0].Name)

	plain, err := Parse(string(text), "ib03")
	require.NoError(t, err)
	assert.Equal(t, plain.Probe, c.Probe)
	assert.Equal(t, plain.Rails[0].Table, c.Rails[0].Table)
	assert.Equal(t, plain.Policies[0].Priority, c.Policies[0].Priority)
	assert.Equal(t, plain.Policies[0].MaxRate, c.Policies[0].MaxRate)
	assert.True(t, c.UFM.Required)
}
