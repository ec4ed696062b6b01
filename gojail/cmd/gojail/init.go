// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
)

// initPatience is how long another node may take to do the same.
const initPatience = 30 * time.Second

func initCommand(n *localNode) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init JAIL",
		Short: "Make the mount targets that a jail lacks, once for all nodes",
		Long: `Makes the directories and empty files in the jail's root that something is
mounted on when a job starts: /tmp, Slurm's directories and commands, what the
configuration mounts. A launch never makes them, because many nodes share the
root. Run it once on a node that may write to the jail's storage: after a jail
was set up, after its configuration was changed, after an upgrade of Slurm.
What is there already is left alone.

A root without /bin/sh is probably not the tree that was meant: it is left alone
unless a person at a terminal says yes, or --force is given.`,
		Example: `  gojail init debian
  gojail init --force scratch`,
		Args:              one("the name of a jail"),
		ValidArgsFunction: n.jailNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, j, err := n.jail(args[0])
			if err != nil {
				return err
			}
			facts, err := node.ReadHost(c, j, n.State)
			if err != nil {
				return err
			}
			view, err := plan.Jail(c, j, facts)
			if err != nil {
				return err
			}
			if lacks := check.FindMissingShell(j, view); lacks != "" && !force && !agrees(cmd, j.Root+" "+lacks) {
				return fmt.Errorf("%s %s: it is probably not the tree that was meant, and nothing was made; correct root = in %s, or run: gojail init --force %s",
					j.Root, lacks, c.Path, j.Name)
			}
			made, err := mount.MakeTargets(c, j, view, time.Now().Add(initPatience))
			for _, t := range made {
				fmt.Fprintln(cmd.OutOrStdout(), "made", t)
			}
			if err == nil && len(made) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing to make: jail", j.Name, "has all its mount targets")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "make them in a root without /bin/sh, too")
	return cmd
}

// agrees asks a person at the terminal whether to go on; nobody is there to agree where there is none.
func agrees(cmd *cobra.Command, what string) bool {
	in, is := cmd.InOrStdin().(*os.File)
	if !is {
		return false
	}
	if _, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS); err != nil {
		return false
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s; make the mount targets there all the same? [y/N] ", what)
	answer, _ := bufio.NewReader(in).ReadString('\n')
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer)))
}
