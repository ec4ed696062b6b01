// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/state"
)

func newReloadCommand(n *localNode) *cobra.Command {
	return &cobra.Command{
		Use:   "reload [JAIL]",
		Short: "Reassemble jails for the next job; running jobs are not affected",
		Long: `A jail is assembled once on each node, and every job's sandbox is made from
it. A change of gojail.toml takes effect by itself. Use reload after a change
of something else that jails show: a file of the node such as
/etc/resolv.conf, an upgrade of Slurm, a driver and its devices, a mount below
the jail's root.

Without a name: all jails. Running jobs keep their sandboxes.`,
		Example: `  gojail reload
  gojail reload debian`,
		Args:              cmdline.TakeUpToOneArgument("the name of a jail"),
		ValidArgsFunction: n.CompleteJailNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			state, err := state.OpenState(n.State)
			if err != nil {
				return err
			}
			names := args
			if len(names) == 0 {
				zygotes, err := state.Zygotes()
				if err != nil {
					return err
				}
				for _, r := range zygotes {
					names = append(names, r.Name)
				}
			} else if _, _, err := n.LoadJail(args[0]); err != nil {
				return err
			}
			return reloadJails(cmd, state, names)
		},
	}
}

// reloadJails ends the zygotes of the jails, and prints which.
func reloadJails(cmd *cobra.Command, state *state.State, names []string) error {
	ended := 0
	for _, name := range names {
		was, err := sandbox.Reload(state, name, time.Now().Add(10*time.Second))
		if err != nil {
			return err
		}
		if was {
			ended++
			fmt.Fprintf(cmd.OutOrStdout(), "jail %s will be reassembled for the next job\n", name)
		}
	}
	if ended == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "nothing to do: the next job reassembles the jail anyway")
	}
	return nil
}
