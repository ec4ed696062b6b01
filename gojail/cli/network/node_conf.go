// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/gres"
)

func newNodeConfCommand(n *localNode) *cobra.Command {
	var compare bool
	cmd := &cobra.Command{
		Use:   "node-conf",
		Short: "Print what a dynamic node tells slurmctld about its GPUs, VFs and jails",
		Long: `Prints one line for slurmd -Z --conf: Gres, with GPUs under the type that
AutoDetect=nvml gives them and VFs as network.toml names them, and Features:
gojail, and jail-NAME for each jail of gojail.toml. slurmd finds CPUs and memory
itself. gres.conf needs the lines that gojail gres prints. The VFs must exist
(gojail vf apply).

With --check: asks slurmctld for the node (scontrol show node), and prints each
difference in GRES, and each feature that slurmctld lacks. slurmctld makes a
node INVAL that registers with fewer GRES than slurmctld has for it. GRES of
names that are not gojail's are left out; of GPUs only NVIDIA's are counted. The
exit code is 1 if there is a difference.`,
		Example: `  slurmd -Z --conf "$(gojail node-conf)"
  gojail node-conf --check`,
		Args: cmdline.TakeNoArgument("it is about this node"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			own, err := n.describeNode(cmd)
			if err != nil {
				return err
			}
			if !compare {
				fmt.Fprintln(cmd.OutOrStdout(), own)
				return nil
			}
			known, err := n.queryNode(cmd.Context())
			if err != nil {
				return err
			}
			differences := own.Compare(known)
			for _, line := range differences {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", n.Name, line)
			}
			if differences != nil {
				return cmdline.SilentExit(1)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&compare, "check", false, "compare with what slurmctld has for this node")
	return cmd
}

// describeNode returns the node's GRES and features. A node without a network.toml has no VFs.
func (n *localNode) describeNode(cmd *cobra.Command) (gres.NodeConf, error) {
	jails, err := n.LoadConfig()
	if err != nil {
		return gres.NodeConf{}, err
	}
	cfg, err := n.loadNetwork()
	if errors.Is(err, fs.ErrNotExist) && !cmd.Flags().Changed("network") {
		cfg, err = &config.Config{Path: n.Network, Node: n.Name}, nil
	}
	if err != nil {
		return gres.NodeConf{}, err
	}
	h, err := n.openHardware()
	if err != nil {
		return gres.NodeConf{}, err
	}
	defer h.names.Close()
	inv, err := n.readInventory(h)
	if err != nil {
		return gres.NodeConf{}, err
	}
	features := []string{"gojail"}
	for _, name := range jails.JailNames() {
		features = append(features, "jail-"+name)
	}
	return gres.DescribeNode(cfg, inv, features)
}

// queryNode returns the node's GRES and features in slurmctld. SLURM_CONF, if set, names another
// slurm.conf than the node's own.
func (n *localNode) queryNode(ctx context.Context) (gres.NodeConf, error) {
	c, err := n.LoadConfig()
	if err != nil {
		return gres.NodeConf{}, err
	}
	conf := os.Getenv("SLURM_CONF")
	if own := filepath.Join(c.Slurm.Conf, "slurm.conf"); conf == "" && rootpath.Exists(own) {
		conf = own // otherwise scontrol finds it as Slurm's commands do
	}
	record, err := showNode(ctx, c, conf, n.Name)
	if err != nil {
		return gres.NodeConf{}, err
	}
	return gres.ReadNode(record), nil
}
