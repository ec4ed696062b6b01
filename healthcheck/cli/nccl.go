// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/healthcheck/nccl"
	writer "github.com/gojail/gojail/healthcheck/report"
)

func newNCCLCommand(n *node) *cobra.Command {
	var want nccl.Selection
	var dry, json bool
	cmd := &cobra.Command{
		Use:   "nccl [NODES]",
		Short: "Test GPUs and their network on idle nodes with all_reduce_perf jobs",
		Long: `nccl submits all_reduce_perf of nccl-tests as jobs of low priority to idle nodes:
to each node alone, then to pairs. A node is drained only if it is slow or wrong
with two partners that pass with other nodes. One round drains at most nccl.drains
nodes. Jobs that crash, hang, are cancelled or preempted drain no node. Nodes that
were tested within nccl.again are skipped, unless they are named in NODES.

It runs on one machine, as root, with Slurm's commands and the table [nccl] of
health.toml. If it is killed, the next start continues the unfinished round.

The exit code is 0 if all nodes pass, 1 for a warning, 2 for a bad node, 3 if
a result could not be determined.`,
		Example: `  gojail-healthcheck nccl --dry-run
  gojail-healthcheck nccl 'gpu[1-8]'
  gojail-healthcheck nccl --retest gpu3`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				want.Nodes = args[0]
			}
			return n.runNCCL(cmd, want, dry, json)
		},
	}
	cmd.Flags().BoolVar(&want.Retest, "retest", false,
		"test the nodes that this command drained (among NODES) again, and undrain those that pass")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be submitted and change nothing")
	cmd.Flags().BoolVar(&json, "json", false, "write JSON")
	return cmd
}

// ncclReport is the output of the command nccl.
type ncclReport interface {
	WriteText(io.Writer) error
	WriteJSON(io.Writer) error
}

func (n *node) runNCCL(cmd *cobra.Command, want nccl.Selection, dry, json bool) error {
	c, err := n.loadConfigAsRoot(cmd)
	if err != nil {
		return err
	}
	if err := c.NCCL.CheckReady(); err != nil {
		return err
	}
	account, err := nccl.FindAccount(c.NCCL.User)
	if err != nil {
		return err
	}
	r := &nccl.Runner{
		Config: c,
		Slurm:  &nccl.Slurm{Slurm: c.Slurm, NCCL: &c.NCCL, User: account},
		Store:  nccl.Store{State: filepath.Join(c.State, "nccl"), Run: c.Run},
		Now:    time.Now,
		Say: func(format string, args ...any) {
			fmt.Fprintf(cmd.ErrOrStderr(), time.Now().Format(time.TimeOnly)+"  "+format+"\n", args...)
		},
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if dry {
		p, err := r.PreviewRound(ctx, want)
		if err != nil {
			return err
		}
		return writeNCCLReport(cmd, p, json)
	}
	lock, err := r.Store.Prepare()
	if err != nil {
		return err
	}
	defer lock.Close()
	report, err := r.Run(ctx, want)
	if err != nil {
		return err
	}
	if c.NCCL.Metrics != "" {
		err = writer.WriteMetrics(c.NCCL.Metrics, report.Metrics)
	}
	if err := errors.Join(err, writeNCCLReport(cmd, report, json)); err != nil {
		return err
	}
	if report.Exit != 0 {
		return exitCode(report.Exit)
	}
	return nil
}

func writeNCCLReport(cmd *cobra.Command, report ncclReport, json bool) error {
	if json {
		return report.WriteJSON(cmd.OutOrStdout())
	}
	return report.WriteText(cmd.OutOrStdout())
}
