// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/job"
)

func newNetCheckCommand(n *localNode) *cobra.Command {
	var asJSON bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check inside a job that all its nodes reach each other on each rail",
		Long: `Checks each rail of the job: the link is up, the interface has its address,
the gateway and the job's other nodes answer. Run by srun on all nodes of a
job, it prints a table: a line for each node as it finishes, and a column for
each rail, with "ok" or the first fault:
  missing, down, no carrier   the interface
  no RDMA, RDMA down          the job's RDMA device, or its port
  no address                  the interface lacks the address given to the job
  no gateway                  the rail's gateway does not answer
  no route                    a packet from the rail's address cannot be sent
  3/7                         3 of 7 other nodes answered
Faults are described in full on standard error. The exit code is 1 if there is
a fault.

It needs no privilege and no server. One task on each node takes part, the
other tasks exit at once. The nodes find each other by UDP broadcasts on each
rail, to a port between 20000 and 29999 derived from job and step, and answer
each other directly. A node that does not take part, or starts later than
--timeout, counts as not answering. An answer does not prove its sender:
another tenant of the same VLAN could forge one.

On a rail without addresses (RDMA only), the interface and the device are
checked. Outside srun, only the job's own node is checked.`,
		Example: `  srun -N8 --jail=debian --jail-net=compute --gres=nic:rail0:1,nic:rail1:1 \
    /run/gojail/bin/gojail net check
  srun --overlap --jobid=4711 --jail=debian --jail-net=compute /run/gojail/bin/gojail net check`,
		Args:        cobra.NoArgs,
		Annotations: map[string]string{"anybody": "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return fmt.Errorf("--timeout=%v: must be positive, such as 10s", timeout)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return checkRails(ctx, n.Name, asJSON, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, a line for each node")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "how long to wait for answers")
	return cmd
}

// checkRails checks the rails and prints the table or JSON. Each line is one write(2), since srun mixes
// the lines of all nodes.
func checkRails(ctx context.Context, host string, asJSON bool, out, problems io.Writer) error {
	view, err := job.ReadView(os.Getenv, inventory.Host.Sys)
	if err != nil {
		return err
	}
	if len(view.Rails) == 0 {
		return fmt.Errorf("the job has no rails; start it with --jail-net=LABEL")
	}
	step, err := job.ReadStep(os.Getenv)
	together := &step
	switch {
	case err != nil:
		fmt.Fprintf(problems, "%s: %v\n", host, err)
		together = nil
	case step.Local != 0:
		return nil
	default:
		host = step.Nodes.Name(step.Node)
	}
	t := newRailTable(view, host, together)
	if !asJSON && (together == nil || step.Node == 0) { // before any node can have an answer from this one
		fmt.Fprintln(out, t.header())
	}
	results := job.Check(ctx, view, together)
	failed := false
	for _, r := range results {
		for _, p := range r.Problems {
			failed = true
			fmt.Fprintf(problems, "%s: %s: %s\n", host, t.title(&r.Rail), p)
		}
	}
	if asJSON {
		line, err := json.Marshal(map[string]any{"node": host, "rails": results})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", line)
	} else {
		fmt.Fprintln(out, t.row(host, results))
	}
	if failed {
		return cmdline.SilentExit(1)
	}
	return nil
}

// railTable formats lines whose columns have the same width on all nodes.
type railTable struct {
	view  *job.View
	nodes int // width of the first column
}

const railWidth = len("no carrier")

func newRailTable(view *job.View, host string, step *job.Step) railTable {
	t := railTable{view, max(len("NODE"), len(host))}
	if step != nil {
		for i := range step.Nodes.Len() {
			t.nodes = max(t.nodes, len(step.Nodes.Name(i)))
		}
	}
	return t
}

// title returns the name of the rail, or else of its interface.
func (t railTable) title(r *job.Rail) string {
	if r.Rail == "" {
		return r.Interface
	}
	return r.Rail
}

func (t railTable) header() string {
	line := fmt.Sprintf("%-*s", t.nodes, "NODE")
	for i := range t.view.Rails {
		line += t.cell(&t.view.Rails[i], t.title(&t.view.Rails[i]))
	}
	return strings.TrimRight(line, " ")
}

func (t railTable) row(host string, results []*job.Result) string {
	line := fmt.Sprintf("%-*s", t.nodes, host)
	for _, r := range results {
		line += t.cell(&r.Rail, r.Result)
	}
	return strings.TrimRight(line, " ")
}

func (t railTable) cell(r *job.Rail, text string) string {
	return fmt.Sprintf("  %-*s", max(railWidth, len(t.title(r))), text)
}
