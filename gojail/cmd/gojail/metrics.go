// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/metrics"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
)

func newMetricsCommand(n *localNode) *cobra.Command {
	var output string
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
that it names may have ended.

What cannot be read is told on the standard error and counted by the metric
gojail_metrics_errors; the exit code is 1 only if the metrics cannot be written.`,
		Example: `  gojail metrics
  gojail metrics --output /var/lib/prometheus/node-exporter/gojail-%n.prom`,
		Args: takeNoArgument("it prints the metrics of all jobs"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := state.OpenState(n.State)
			if err != nil {
				return err
			}
			if output == "" {
				text, err := n.renderMetrics(cmd, s)
				if err == nil {
					_, err = cmd.OutOrStdout().Write(text)
				}
				return err
			}
			return n.writeMetrics(cmd, s, output)
		},
	}
	cmd.Flags().StringVar(&output, "output", "", "the file to replace; its name ends in .prom")
	return cmd
}

// metricsPatience is how long another process that writes metrics of this node is waited for.
const metricsPatience = 5 * time.Second

// writeMetrics replaces the file, one process at a time.
func (n *localNode) writeMetrics(cmd *cobra.Command, s *state.State, output string) error {
	if err := makeAbsolute(&output); err != nil {
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
	text, err := n.renderMetrics(cmd, s)
	if err != nil {
		return err
	}
	return metrics.WriteFile(strings.ReplaceAll(output, "%n", n.Name), text)
}

// renderMetrics returns the metrics, and prints what is missing in them.
func (n *localNode) renderMetrics(cmd *cobra.Command, s *state.State) ([]byte, error) {
	c, err := n.loadConfig()
	facts := metrics.Read(n.Name, s, c, "/proc")
	facts.AddProblem(err)
	n.addNetworks(facts, s)
	for _, problem := range facts.Problems {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", oneline.Text(problem.Error()))
	}
	return metrics.Render(facts)
}
