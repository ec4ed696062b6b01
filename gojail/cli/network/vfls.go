// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
)

func newVFListCommand(n *localNode) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the cards and VFs of this node",
		Long: `Lists each VF, and each card that is given whole, with its card (PF), PCI
address, network interface and RDMA device, NUMA node, the nearest GPU and its
distance (in the terms of nvidia-smi topo), its rail, the job that has it, and
its state:
  free         the next job may get it
  in use       a job has it; its interface is in the job's network namespace
  elsewhere    its interface is in a namespace that is no gojail job's
  NAME         it is bound to that driver, for example for a virtual machine
  quarantined  it could not be released completely, and no job gets it: gojail
               sweep tries again, gojail vf lift ends the quarantine
  none of N    a card that could have N VFs`,
		Example: `  gojail vf ls
  gojail vf ls --json | jq -r '.vfs[] | select(.state == "quarantined") | .pci'`,
		Args: cmdline.TakeNoArgument("it lists all VFs"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := n.listVFs(cmd)
			if err != nil {
				return err
			}
			if asJSON {
				return cmdline.PrintJSON(cmd.OutOrStdout(), map[string][]inventory.Row{"vfs": rows})
			}
			return inventory.Render(cmd.OutOrStdout(), rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// listVFs returns a row for each VF. An error in network.toml is a warning: it must not hide the VFs.
func (n *localNode) listVFs(cmd *cobra.Command) ([]inventory.Row, error) {
	h, err := n.openHardware()
	if err != nil {
		return nil, err
	}
	defer h.names.Close()
	inv, err := n.readInventory(h)
	if err != nil {
		return nil, err
	}
	var know inventory.Holders
	if know.Job, know.Quarantine, err = n.readHolders(); err != nil {
		return nil, err
	}
	if know.Rail, err = n.readRailNames(inv); err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: rails are omitted:", err)
	}
	rows := inv.ListVFs(know)
	for i := range rows {
		vf := inv.FindFunction(rows[i].PCI)
		switch {
		case vf == nil || rows[i].State != inventory.Free:
		case vf.HasUserDriver():
			rows[i].State = vf.Driver
		case vf.IsElsewhere():
			rows[i].State = "elsewhere"
		}
	}
	return rows, nil
}

// readRailNames returns the rails of each VF by its PCI address; several, separated by commas, where
// rails share a policy.
func (n *localNode) readRailNames(inv *inventory.Inventory) (map[string]string, error) {
	cfg, err := n.loadNetwork()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	vfs, err := policy.FindRailVFs(cfg, inv)
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
