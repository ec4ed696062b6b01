// SPDX-License-Identifier: Apache-2.0

package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/netsetup/pool"
)

// addressRow is an address that a pool cannot give now.
type addressRow struct {
	Pool    string     `json:"pool"`
	Address string     `json:"address"`
	Cluster string     `json:"cluster,omitempty"`
	Node    string     `json:"node"` // that has it, or that detected the other machine
	Job     string     `json:"job,omitempty"`
	Rail    string     `json:"rail,omitempty"`
	VF      string     `json:"vf,omitempty"`
	Since   time.Time  `json:"since"`
	MAC     string     `json:"mac,omitempty"`   // of another machine that has the address
	Until   *time.Time `json:"until,omitempty"` // the end of the quarantine
}

func newPoolListCommand(n *localNode) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the addresses that jobs have, on all nodes",
		Long: `Lists each leased address of the pools with a directory: its pool, cluster, node,
job, rail and VF, and since when. The state is one of
  leased        a job has it, or had it on a node that is gone: see
                gojail pool release
  in conflict   the node found another machine with this address, whose MAC
                address is shown; no job gets it before the time shown`,
		Example: `  gojail pool ls
  gojail pool ls --json | jq -r '.addresses[].node' | sort | uniq -c`,
		Args: cmdline.TakeNoArgument("it lists all pools"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := n.listPools(cmd.Context())
			switch {
			case rows == nil:
				return err
			case asJSON:
				list := map[string][]addressRow{"addresses": rows}
				return errors.Join(cmdline.PrintJSON(cmd.OutOrStdout(), list), err)
			}
			return errors.Join(printAddresses(cmd.OutOrStdout(), rows), err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// listPools returns the addresses that the pools cannot give, by pool and address, nil only if network.toml cannot be
// loaded. An error of one pool does not hide the others.
func (n *localNode) listPools(ctx context.Context) ([]addressRow, error) {
	network, err := n.loadNetwork()
	if err != nil {
		return nil, err
	}
	rows := []addressRow{}
	for _, p := range network.Pools {
		limited, cancel := context.WithTimeout(ctx, poolTimeout)
		all, failed := pool.List(limited, p, n.Name)
		cancel()
		err = errors.Join(err, failed)
		for _, l := range all.Leases {
			rows = append(rows, addressRow{Pool: p.Name, Address: l.Addr.String(), Cluster: l.Cluster, Node: l.Node,
				Job: l.Job, Rail: l.Rail, VF: l.VF, Since: l.Time})
		}
		for _, q := range all.Quarantine {
			until := q.Until()
			rows = append(rows, addressRow{Pool: p.Name, Address: q.Addr.String(), Node: q.Node, Since: q.Time,
				MAC: q.MAC.String(), Until: &until})
		}
	}
	return rows, err
}

func printAddresses(w io.Writer, rows []addressRow) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "POOL\tADDRESS\tCLUSTER\tNODE\tJOB\tRAIL\tVF\tSINCE\tSTATE")
	for _, r := range rows {
		state := "leased"
		if r.Until != nil {
			state = fmt.Sprintf("in conflict with %s, until %s", r.MAC, cmdline.FormatTime(r.Until))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Pool, r.Address, cmp.Or(r.Cluster, "-"), r.Node,
			cmp.Or(r.Job, "-"),
			cmp.Or(r.Rail, "-"), cmp.Or(r.VF, "-"), cmdline.FormatTime(&r.Since), state)
	}
	return t.Flush()
}

// completeNodesWithLeases returns the names of the nodes that have an address, for the shell's completion.
func (n *localNode) completeNodesWithLeases(cmd *cobra.Command, args []string, _ string) ([]string,
	cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 && n.FillDefaults(cmd) == nil {
		rows, _ := n.listPools(cmd.Context()) // what can be listed can be completed
		for _, r := range rows {
			if r.Until == nil {
				names = append(names, r.Node)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}
