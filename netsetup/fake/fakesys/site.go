// SPDX-License-Identifier: Apache-2.0

package fakesys

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
)

// Two cards at different sockets.
var (
	Ens1f0 = Card{PCI: "0000:86:00.0", Under: "pci0000:80/0000:80:01.0", Name: "ens1f0", NUMA: 1, CPUs: "16-31",
		TotalVFs: 8, RDMA: "mlx5_0"}
	Ens2f0 = Card{PCI: "0000:3b:00.0", Under: "pci0000:3a/0000:3a:00.0", Name: "ens2f0", CPUs: "0-15", TotalVFs: 8}
)

// WithVFs returns the card with VFs that exist from the start.
func (c Card) WithVFs(vfs int) Card {
	c.NumVFs = vfs
	return c
}

// Roots returns the directories for package inventory.
func (t *Tree) Roots() inventory.Roots {
	return inventory.Roots{Sys: t.Sys, Proc: t.Proc, Dev: t.Dev}
}

// ReadInventory returns the current inventory of the node.
func (t *Tree) ReadInventory() *inventory.Inventory {
	t.t.Helper()
	inv, err := inventory.Read(t.Roots())
	require.NoError(t.t, err)
	return inv
}

// NewConfig returns a configuration for node gpu01, with the policies in lines 10, 20, ...
func NewConfig(policies ...*config.Policy) *config.Config {
	for i, p := range policies {
		p.Line = 10 * (i + 1)
	}
	return &config.Config{Path: "network.toml", Node: "gpu01", Policies: policies}
}

// SelectPFs selects PFs by name, "ens1f0", or some of their VFs, "ens1f0#0-3".
func SelectPFs(names ...string) config.Selector {
	var s config.Selector
	for _, name := range names {
		r := config.PFRange{Name: name, Last: -1}
		if before, after, found := strings.Cut(name, "#"); found {
			r.Name = before
			fmt.Sscanf(after, "%d-%d", &r.First, &r.Last)
		}
		s.PF = append(s.PF, r)
	}
	return s
}
