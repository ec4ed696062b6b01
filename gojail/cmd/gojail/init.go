// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail"
)

// initPatience is how long another node may take to do the same.
const initPatience = 30 * time.Second

func initCommand(n *node) *cobra.Command {
	return &cobra.Command{
		Use:   "init JAIL",
		Short: "Make the mount targets that a jail lacks, once for all nodes",
		Long: `Makes the directories and empty files in the jail's root that something is
mounted on when a job starts: /tmp, Slurm's directories and commands, what the
configuration mounts. A launch never makes them, because many nodes share the
root. Run it once on a node that may write to the jail's storage: after a jail
was set up, after its configuration was changed, after an upgrade of Slurm.
What is there already is left alone.`,
		Example:           `  gojail init debian`,
		Args:              one("the name of a jail"),
		ValidArgsFunction: n.jailNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, j, err := n.jail(args[0])
			if err != nil {
				return err
			}
			facts, err := gojail.ReadHost(c, j, n.State)
			if err != nil {
				return err
			}
			view, err := gojail.PlanJail(c, j, facts)
			if err != nil {
				return err
			}
			made, err := gojail.MakeTargets(c, j, view, time.Now().Add(initPatience))
			for _, t := range made {
				fmt.Fprintln(cmd.OutOrStdout(), "made", t)
			}
			if err == nil && len(made) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing to make: jail", j.Name, "has all its mount targets")
			}
			return err
		},
	}
}
