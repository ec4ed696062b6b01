// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/cli/network"
	"github.com/gojail/gojail/gojail/metrics"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
)

func newMetricsCommand(n *localNode) *cobra.Command {
	var output, mapping string
	cmd := &cobra.Command{
		Use:   "metrics",
		Short: "Print the metrics of this node's jobs, GPUs, VFs and jails",
		Long: `Prints what this node knows of its jobs with jails in the text format of
Prometheus: each job with its user, GPUs, VFs and jail, steps that entered and
failed, assembled jails, VFs in quarantine. It reads what the launches wrote
down, and asks neither Slurm nor the storage of a jail.

With --output it replaces a file, as node_exporter's textfile collector reads
it; gojail-metrics.timer does that every 15 seconds. %n in the name of the file
is the node's name: where several slurmd run on one machine, each has its own
file. If the file cannot be replaced for a minute, it is removed, since jobs
that it names may have ended; so are the files of --dcgm-job-mapping.

With --dcgm-job-mapping it also replaces the files from which dcgm-exporter
takes the label hpc_job, one for each GPU or MIG instance that jobs have. With
several slurmd on one machine only one of them may have GPUs.

What cannot be read is printed to standard error and counted by the metric
gojail_metrics_errors; the exit code is 1 only if the metrics cannot be written.`,
		Example: `  gojail metrics
  gojail metrics --output /var/lib/gojail-metrics/node-exporter/gojail-%n.prom`,
		Args: cmdline.TakeNoArgument("it prints the metrics of all jobs"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(cmdline.MakeAbsolute(&output), cmdline.MakeAbsolute(&mapping)); err != nil {
				return err
			}
			if output == "" {
				return n.printMetrics(cmd, mapping)
			}
			path := strings.ReplaceAll(output, "%n", n.Name)
			if err := n.writeMetrics(cmd, path, mapping); err != nil {
				err = metrics.RemoveStale(path, err)
				if mapping != "" {
					err = metrics.RemoveStaleMapping(strings.ReplaceAll(mapping, "%n", n.Name), err)
				}
				return err
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&mapping, "dcgm-job-mapping", "",
		"the directory that dcgm-exporter reads jobs of GPUs from (its --hpc-job-mapping-dir)")
	cmd.Flags().StringVar(&output, "output", "", "the file to replace; its name ends in .prom")
	return cmd
}

// metricsPatience is how long another process that writes metrics of this node is waited for.
const metricsPatience = 5 * time.Second

// printMetrics writes the metrics to the standard output.
func (n *localNode) printMetrics(cmd *cobra.Command, mapping string) error {
	s, err := state.OpenState(n.State)
	if err != nil {
		return err
	}
	text, err := metrics.Render(n.readFacts(cmd, s, mapping))
	if err == nil {
		_, err = cmd.OutOrStdout().Write(text)
	}
	return err
}

// writeMetrics replaces the file, one process at a time.
func (n *localNode) writeMetrics(cmd *cobra.Command, output, mapping string) error {
	s, err := state.OpenState(n.State)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), metricsPatience)
	defer cancel()
	path := filepath.Join(s.Path(), "metrics.lock")
	lock, err := filelock.Wait(ctx, path)
	if err != nil {
		return filelock.Explain(path, err)
	}
	defer lock.Close()
	text, err := metrics.Render(n.readFacts(cmd, s, mapping))
	if err != nil {
		return err
	}
	return metrics.WriteFile(output, text)
}

// readFacts returns what is known of the node, writes the job mapping if one is wanted, and prints what is missing.
func (n *localNode) readFacts(cmd *cobra.Command, s *state.State, mapping string) *metrics.Facts {
	c, err := n.LoadConfig()
	facts := metrics.Read(n.Name, s, c, "/proc")
	facts.AddProblem(err)
	network.AddMetrics(&n.Node, facts, s)
	if mapping != "" {
		facts.AddProblem(facts.WriteJobMapping(strings.ReplaceAll(mapping, "%n", n.Name)))
	}
	for _, problem := range facts.Problems {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", oneline.Text(problem.Error()))
	}
	return facts
}
