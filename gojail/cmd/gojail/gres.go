// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/netsetup/gres"
)

func gresCommand(n *localNode) *cobra.Command {
	return &cobra.Command{
		Use:   "gres",
		Short: "Print this node's lines for gres.conf and slurm.conf",
		Long: `Prints what Slurm has to know of this node's VFs and GPUs: its lines for
gres.conf, and GresTypes and Gres for slurm.conf. Nothing is written. Each line
names its node, so those of all nodes go into one gres.conf.

The VFs must be there (gojail vf apply). Their files below /dev/gojail are made
by gojail vf apply at each boot, before slurmd looks for them. Drain the node
before you change the number of VFs: Slurm knows them by their place.

GPUs are named as AutoDetect=nvml names them; where gres.conf has that, leave
their lines out.`,
		Example: `  gojail gres
  srun -N8 gojail gres | grep '^NodeName.*File=' >>/etc/slurm/gres.conf`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := n.loadNetwork()
			if err != nil {
				return err
			}
			h, err := n.hardware()
			if err != nil {
				return err
			}
			defer h.names.Close()
			inv, err := h.inventory()
			if err != nil {
				return err
			}
			gresConf, slurmConf, err := gres.Lines(cfg, inv, n.Name)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if slurmConf == "" {
				fmt.Fprintf(out, "# %s has no VF or GPU for Slurm: no rail of network.toml has gres, or none is on this node\n%s", n.Name, gresConf)
				return nil
			}
			fmt.Fprintf(out, "# gres.conf, on every node:\n%s", gresConf)
			fmt.Fprintf(out, "# slurm.conf: GresTypes once, with those of other nodes; Gres goes into the NodeName line that %s has:\n%s", n.Name, slurmConf)
			return nil
		},
	}
}
