// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/slurm"
	"github.com/gojail/gojail/netsetup/pool"
)

// poolTimeout is the time for the file server of one pool's directory.
const poolTimeout = time.Minute

func newPoolCommand(n *localNode) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pool",
		Short: "List the leased addresses of all nodes, and release those of a node that is gone",
		Long: `A pool of network.toml with a directory leases its addresses there, to the jobs
of all nodes. A pool with nodes and per_node has no leases: its addresses are
computed.`,
		Example: `  gojail pool ls
  gojail pool release gpu07`,
		Annotations: map[string]string{"anybody": "yes"},
		Args:        cobra.NoArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPoolListCommand(n), newPoolReleaseCommand(n))
	return cmd
}

func newPoolReleaseCommand(n *localNode) *cobra.Command {
	return &cobra.Command{
		Use:   "release NODE",
		Short: "Release the addresses of a node that was removed from Slurm",
		Long: `A node gives back the addresses of its jobs when they end; after a crash, at the
next start of its slurmd. A node that never starts again would keep them for
ever. This command releases them, in all pools with a directory, from any node
that has the directory. Leases of other clusters in the same directory are left
alone.

The node must be unknown to slurmctld (scontrol show node): otherwise a job may
have the addresses. The command releases nothing while slurmctld does not
answer. The machine must be off, or run no process of a job any more: Slurm
forgets a node that is taken out of slurm.conf, while its jobs go on.`,
		Example: `  scontrol delete nodename=gpu07
  gojail pool release gpu07`,
		Args: cmdline.TakeOneArgument("the name of a node that is no longer in Slurm"),
		RunE: func(cmd *cobra.Command, args []string) error {
			released, err := n.releasePools(cmd.Context(), args[0])
			for _, l := range released {
				fmt.Fprintf(cmd.OutOrStdout(), "released the address %s of job %s (rail %s)\n", l.Addr, l.Job, l.Rail)
			}
			if err == nil && released == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "the node %s has no address\n", args[0])
			}
			return err
		},
		ValidArgsFunction: n.completeNodesWithLeases,
	}
}

// releasePools releases the addresses of a node that slurmctld does not know.
func (n *localNode) releasePools(ctx context.Context, gone string) ([]pool.Lease, error) {
	jails, err := n.LoadConfig()
	if err != nil {
		return nil, err
	}
	network, err := n.loadNetwork()
	if err != nil {
		return nil, err
	}
	var released []pool.Lease
	var problems []error
	for _, p := range network.Pools {
		cluster, err := checkGone(ctx, jails, gone) // each time: the pool before may have taken a while
		if err != nil {
			return released, errors.Join(append(problems, err)...)
		}
		limited, cancel := context.WithTimeout(ctx, poolTimeout)
		more, err := pool.ReleaseNode(limited, p, cluster, gone, n.Name)
		cancel()
		released, problems = append(released, more...), append(problems, err)
	}
	return released, errors.Join(problems...)
}

// checkGone fails unless slurmctld answers that it does not know the node, and returns the name of the cluster. That
// and the address of slurmctld come from the same file, whatever SLURM_CONF is: the slurmctld of another cluster does
// not know the nodes of this one.
func checkGone(ctx context.Context, c *config.Config, name string) (cluster string, err error) {
	if name == "" || strings.ContainsAny(name, ",[] =\n") { // scontrol takes lists
		return "",
			fmt.Errorf("cannot release the addresses of %.100q: write the name of one node; to list the names: "+
				"gojail pool ls", name)
	}
	conf := filepath.Join(c.Slurm.Conf, "slurm.conf")
	if cluster = node.SlurmValue(c, "ClusterName"); cluster == "" {
		return "", fmt.Errorf("cannot release the addresses of %s: %s has no ClusterName; name the directory of "+
			"slurm.conf in gojail.toml (slurm.conf)", name, conf)
	}
	_, err = showNode(ctx, c, conf, name)
	switch {
	case err == nil || errors.As(err, new(*slurm.ReadError)): // it has printed something else
		return "", fmt.Errorf("cannot release the addresses of %s: it is in Slurm, and its jobs may have them; "+
			"remove it first (scontrol delete nodename=%[1]s), or run on it: gojail sweep", name)
	case !errors.Is(err, slurm.ErrUnknownNode):
		return "", fmt.Errorf("cannot release the addresses of %s: %w", name, err)
	}
	return cluster, nil
}
