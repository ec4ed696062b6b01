// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
)

func vfListCommand(n *localNode) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the cards and VFs of this node",
		Long: `Lists each VF with its card (PF), PCI address, network interface and RDMA
device, NUMA node, the nearest GPU and how far that is (as nvidia-smi topo says
it), its rail, the job that has it, and its state:
  free         the next job may get it
  in use       a job has it; its interface is in the job's network namespace
  elsewhere    its interface is in another namespace, and not a job's of gojail
  NAME         it is bound to that driver, for a virtual machine maybe
  quarantined  it could not be given back in order, and no job gets it:
               gojail sweep tries again, gojail vf lift believes you
  none of N    a card that could have N VFs`,
		Example: `  gojail vf ls
  gojail vf ls --json | jq -r '.vfs[] | select(.state == "quarantined") | .pci'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := n.listVFs(cmd)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), map[string][]inventory.Row{"vfs": rows})
			}
			return inventory.Render(cmd.OutOrStdout(), rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// listVFs shows what there is, even where network.toml is not right yet.
func (n *localNode) listVFs(cmd *cobra.Command) ([]inventory.Row, error) {
	h, err := n.hardware()
	if err != nil {
		return nil, err
	}
	defer h.names.Close()
	inv, err := h.inventory()
	if err != nil {
		return nil, err
	}
	var know inventory.Holders
	if know.Job, know.Quarantine, err = n.holders(); err != nil {
		return nil, err
	}
	if know.Rail, err = n.railNames(inv); err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: no rails are shown:", err)
	}
	rows := inv.List(know)
	for i := range rows {
		vf := inv.VF(rows[i].PCI)
		switch {
		case vf == nil || rows[i].State != inventory.Free:
		case vf.User():
			rows[i].State = vf.Driver
		case vf.Elsewhere():
			rows[i].State = "elsewhere"
		}
	}
	return rows, nil
}

// railNames are the rails of each VF by its PCI address; several where rails share a policy.
func (n *localNode) railNames(inv *inventory.Inventory) (map[string]string, error) {
	cfg, err := n.loadNetwork()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	vfs, err := policy.RailVFs(cfg, inv)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, rail := range cfg.Rails {
		for _, vf := range vfs[rail] {
			names[vf.PCI] = strings.TrimPrefix(names[vf.PCI]+","+rail.Name, ",")
		}
	}
	return names, nil
}
