// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/site"
)

func newCheckCommand(n *localNode) *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find what would make a job fail on this node before a job runs into it",
		Long: `Checks the configuration and this node: who can write the configuration, the
kernel, the installed files, the state and scratch directories, what slurm.conf
and plugstack.conf say, and for each jail its storage, mount targets and mounts.
With a network.toml: the file itself, the cards, drivers and VFs that it asks
for, the source of addresses, and quarantined VFs. Nothing is changed.

Each line has a level, what was found, and what to do about it. OK: nothing to
do. WARN: costs time, or may be unexpected. FAIL: launches fail. The exit code
is 1 if any line is FAIL.`,
		Example: `  gojail check
  gojail check --quiet`,
		Args: takeNoArgument("it checks all jails"),
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
				return silentExit(1)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "omit the lines that are OK")
	return cmd
}
