// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/site"
)

func checkCommand(n *localNode) *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find what would make a job fail on this node, before a job finds it",
		Long: `Checks the configuration and this node: who can write the configuration, the
kernel, the installed files, the state and scratch directories, what slurm.conf
and plugstack.conf say, and for each jail its storage, mount targets and mounts.
With a network.toml also that, the cards, drivers and VFs that it wants, where
addresses come from, and quarantined VFs. Nothing is changed.

Each line is OK, WARN (costs time, or may surprise somebody) or FAIL (launches
fail), what was found, and what to do about it. The exit code is 1 if anything
is FAIL.`,
		Example: `  gojail check
  gojail check --quiet`,
		Args: none("it looks at all jails"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			failed := false
			report := func(f check.Finding) {
				failed = failed || f.Level == check.Fail
				if !quiet || f.Level != check.OK {
					fmt.Fprintln(cmd.OutOrStdout(), f)
				}
			}
			accounts := site.SystemAccounts()
			n.Accounts = &accounts
			check.Check(n.Node, report)
			n.checkNetwork(report)
			if failed {
				return silent(1)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "leave out the lines that are OK")
	return cmd
}
