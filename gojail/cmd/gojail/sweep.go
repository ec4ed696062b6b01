// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/state"
)

func sweepCommand(n *localNode) *cobra.Command {
	return &cobra.Command{
		Use:   "sweep",
		Short: "Remove what jobs that are gone left behind on this node",
		Long: `Ends the sandboxes and removes the scratch directories of jobs that are gone:
no slurmstepd of theirs runs here, and Slurm's controller says that they ended.
A job that may still be there is left alone, and the reason is printed. slurmd
does the same when it starts, so this is rarely needed. Files of jobs' /tmp for
which their epilog had no time are removed, too. Processes of gojail's whose
record was removed or damaged are ended, unless somebody is in their sandbox.

VFs and addresses of such jobs are given back, and quarantined VFs tried again.`,
		Example: `  gojail sweep`,
		Args:    none("it looks at all jobs"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := n.load()
			if err != nil {
				return err
			}
			state, err := state.OpenState(n.State)
			if err != nil {
				return err
			}
			report, err := sandbox.Sweep(state, c)
			out := cmd.OutOrStdout()
			for _, job := range report.Removed {
				fmt.Fprintf(out, "removed job %s\n", job)
			}
			for _, jail := range report.Zygotes {
				fmt.Fprintf(out, "removed the record of jail %s, whose zygote is gone\n", jail)
			}
			for _, jail := range report.Unused {
				fmt.Fprintf(out, "ended the zygote of jail %s, which is not configured any more\n", jail)
			}
			for _, pid := range report.Lost {
				fmt.Fprintf(out, "ended process %d of gojail, whose record is lost\n", pid)
			}
			for _, why := range report.Kept {
				fmt.Fprintf(out, "kept %s\n", why)
			}
			vfs, err2 := n.sweepNetworks(cmd, c, state)
			left, err3 := report.EmptyTrash(time.Now().Add(sweepPatience))
			for _, why := range left {
				fmt.Fprintln(out, why)
			}
			err = errors.Join(err, err2, err3)
			if err == nil && vfs+len(left)+len(report.Removed)+len(report.Kept)+len(report.Zygotes)+len(report.Unused)+len(report.Lost) == 0 {
				fmt.Fprintln(out, "nothing to remove")
			}
			return err
		},
	}
}

// sweepPatience is for the millions of files that jobs may leave.
const sweepPatience = 30 * time.Minute

func reloadCommand(n *localNode) *cobra.Command {
	return &cobra.Command{
		Use:   "reload [JAIL]",
		Short: "Have jails assembled anew for the next job; running jobs are not touched",
		Long: `A jail is assembled once on each node, and every job's sandbox is made from
that. When gojail.toml changes this happens by itself. Use reload after
something else has changed that jails show: a file of the node such as
/etc/resolv.conf, an upgrade of Slurm, a driver and its devices, a mount below
the jail's root.

Without a name: every jail. Running jobs keep what they have.`,
		Example: `  gojail reload
  gojail reload debian`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: n.jailNames,
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
			} else if _, _, err := n.jail(args[0]); err != nil {
				return err
			}
			return reload(cmd, state, names)
		},
	}
}

func reload(cmd *cobra.Command, state *state.State, names []string) error {
	ended := 0
	for _, name := range names {
		was, err := sandbox.Reload(state, name, time.Now().Add(10*time.Second))
		if err != nil {
			return err
		}
		if was {
			ended++
			fmt.Fprintf(cmd.OutOrStdout(), "jail %s will be assembled anew for the next job\n", name)
		}
	}
	if ended == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "nothing to do: the next job has the jail assembled anyway")
	}
	return nil
}
