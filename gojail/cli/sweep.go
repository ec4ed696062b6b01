// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/cli/jail"
	"github.com/gojail/gojail/gojail/cli/network"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/lease"
	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/oneline"
)

func newSweepCommand(n *localNode) *cobra.Command {
	return &cobra.Command{
		Use:   "sweep",
		Short: "Clean up after jobs that ended on this node",
		Long: `Ends the sandboxes and removes the scratch directories of jobs that ended: no
slurmstepd of the job runs here, and slurmctld reports that the job ended. A
job that may still run is left alone, and the reason is printed. slurmd does
the same when it starts, so this is rarely needed. Files of jobs' /tmp that
the epilog had no time to remove are removed, too. gojail's own processes
whose record was removed or damaged are ended, unless a process is in their
sandbox.

VFs and addresses of such jobs are released, and quarantined VFs are retried.
What a killed "gojail jail edit" left on this node is removed.

Then it tells the store of jails which versions this node uses, see
"gojail jail gc".`,
		Example: `  gojail sweep`,
		Args:    cmdline.TakeNoArgument("it handles all jobs"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := n.LoadConfig()
			if err != nil {
				return err
			}
			state, err := state.OpenState(n.State)
			if err != nil {
				return err
			}
			report, sandboxErr := sandbox.Sweep(state, c)
			out := cmd.OutOrStdout()
			printSweep(out, report)
			vfs, networkErr := network.Sweep(&n.Node, cmd, c, state)
			edits, editErr := jail.SweepEdits()
			for _, dir := range edits {
				fmt.Fprintf(out, "removed the sandbox of a killed gojail jail edit, %s\n", dir)
			}
			left, trashErr := report.EmptyTrash(time.Now().Add(sweepTimeout))
			for _, why := range left {
				fmt.Fprintln(out, why)
			}
			tellStore(out, state, c)
			err = errors.Join(sandboxErr, networkErr, trashErr, editErr)
			if err == nil && vfs+len(edits)+len(left)+len(report.Removed)+len(report.Kept)+len(report.Zygotes)+
				len(report.Unused)+len(report.Lost) == 0 {
				fmt.Fprintln(out, "nothing to remove")
			}
			return err
		},
	}
}

// printSweep prints what a sweep of the sandboxes did.
func printSweep(out io.Writer, report sandbox.SweepReport) {
	for _, job := range report.Removed {
		fmt.Fprintf(out, "removed job %s\n", job)
	}
	for _, jail := range report.Zygotes {
		fmt.Fprintf(out, "removed the record of jail %s, whose zygote has ended\n", jail)
	}
	for _, jail := range report.Unused {
		fmt.Fprintf(out, "ended the zygote of jail %s, which is no longer configured\n", jail)
	}
	for _, pid := range report.Lost {
		fmt.Fprintf(out, "ended process %d of gojail, whose record is lost\n", pid)
	}
	for _, why := range report.Kept {
		fmt.Fprintf(out, "kept %s\n", why)
	}
}

// tellStore tells the store of jails what this node uses. If it fails, the node is clean nevertheless.
func tellStore(out io.Writer, s *state.State, c *config.Config) {
	ctx, cancel := context.WithTimeout(context.Background(), leasePatience)
	defer cancel()
	if err := lease.Refresh(ctx, s, c, true); err != nil {
		fmt.Fprintln(out, oneline.Printable(err.Error()))
	}
}

// leasePatience is how long the store has to answer.
const leasePatience = 10 * time.Second

// sweepTimeout suffices to remove the millions of files that jobs may leave.
const sweepTimeout = 30 * time.Minute
