// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/netsetup/gres"
)

func newGresCommand(n *localNode) *cobra.Command {
	return &cobra.Command{
		Use:   "gres",
		Short: "Print this node's lines for gres.conf and slurm.conf",
		Long: `Prints what Slurm needs to know about this node's VFs and GPUs: its lines for
gres.conf, and GresTypes and Gres for slurm.conf. Nothing is written. Each line
names its node, so the lines of all nodes go into one gres.conf.

The VFs must exist (gojail vf apply). gojail vf apply creates their files
below /dev/gojail at each boot, before slurmd looks for them. Drain the node
before you change the number of VFs: Slurm identifies a VF by its position.

GPUs are named as AutoDetect=nvml names them. Where gres.conf has AutoDetect, or
names the GPUs already, omit their lines, as the second example does.`,
		Example: `  gojail gres
  for n in $(scontrol show hostnames 'gpu[01-08]'); do ssh $n gojail gres; done |
    grep '^NodeName.*File=/dev/gojail/' >>/etc/slurm/gres.conf`,
		Args: cmdline.TakeNoArgument("it prints this node's lines"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := n.loadNetwork()
			if err != nil {
				return err
			}
			h, err := n.openHardware()
			if err != nil {
				return err
			}
			defer h.names.Close()
			inv, err := n.readInventory(h)
			if err != nil {
				return err
			}
			gresConf, slurmConf, err := gres.FormatLines(cfg, inv, n.Name)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if slurmConf == "" {
				fmt.Fprintf(out,
					"# %s has no VF or GPU for Slurm: no rail of network.toml has gres, or none is on this node\n%s",
					n.Name, gresConf)
				return nil
			}
			fmt.Fprintf(out, "# gres.conf, on every node:\n%s", gresConf)
			fmt.Fprintf(out, "# slurm.conf: one GresTypes for all nodes; Gres belongs to the NodeName line of %s:\n%s",
				n.Name, slurmConf)
			return nil
		},
	}
}
