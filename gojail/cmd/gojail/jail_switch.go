// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/store"
)

func newJailSwitchCommand(j *jailCommand) *cobra.Command {
	return &cobra.Command{
		Use:   "switch NAME [VERSION]",
		Short: "Make a version the one that new jobs get",
		Long: `Makes a version of the jail current, by one rename; without VERSION the newest.
The beginning of its name is enough. Running jobs keep the version they have.
On NFS a node sees the switch within 60 s by default (acdirmax).`,
		Example: `  gojail jail switch debian
  gojail jail switch debian 20261124-1523`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: j.completeStored,
		RunE: func(cmd *cobra.Command, args []string) error {
			version := ""
			if len(args) > 1 {
				version = args[1]
			}
			return j.move(cmd, args[0], func(ctx context.Context, jail *store.Jail) (store.Moved, error) {
				return jail.SwitchTo(ctx, version, findAuthor())
			})
		},
	}
}

func newJailRollbackCommand(j *jailCommand) *cobra.Command {
	return &cobra.Command{
		Use:   "rollback NAME",
		Short: "Switch back to the version before",
		Long: `Makes the version current that was current before the last switch. A second
rollback goes one version further back. Versions that were removed are passed
over.`,
		Example:           `  gojail jail rollback debian`,
		Args:              takeOneArgument("the name of a jail"),
		ValidArgsFunction: j.completeStored,
		RunE: func(cmd *cobra.Command, args []string) error {
			return j.move(cmd, args[0], func(ctx context.Context, jail *store.Jail) (store.Moved, error) {
				return jail.Rollback(ctx, findAuthor())
			})
		},
	}
}

func (j *jailCommand) move(cmd *cobra.Command, name string, do func(context.Context, *store.Jail) (store.Moved, error)) error {
	jail, err := j.openJail(name)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	moved, err := do(ctx, jail)
	if err == nil {
		printMoved(cmd.OutOrStdout(), name, moved)
	}
	return err
}

func printMoved(w io.Writer, name string, moved store.Moved) {
	switch moved.From {
	case moved.To:
		fmt.Fprintf(w, "version %s of jail %s is current already\n", moved.To, name)
	case "":
		fmt.Fprintf(w, "jail %s: version %s is current\n", name, moved.To)
	default:
		fmt.Fprintf(w, "jail %s: version %s is current, it was %s\n", name, moved.To, moved.From)
	}
}

func newJailRmCommand(j *jailCommand) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "rm NAME VERSION",
		Short: "Remove a version of a jail",
		Long: `Removes a version that is not current. The store does not know yet which nodes
and jobs use a version, so that --force is needed: a node that still has it, for
new steps or for running jobs, would lose its files.`,
		Example:           `  gojail jail rm debian 20261124-152301-3f2a9c1d --force`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: j.completeStored,
		RunE: func(cmd *cobra.Command, args []string) error {
			jail, err := j.openJail(args[0])
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd)
			defer stop()
			var removed string
			err = jail.Remove(ctx, args[1], func(v *store.Version) error {
				if removed = v.Version; force {
					return nil
				}
				return fmt.Errorf("version %s may be in use on a node; when all nodes and jobs have another one, give --force", v.Version)
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "removed version %s of jail %s\n", removed, args[0])
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "no node and no job uses the version")
	return cmd
}
