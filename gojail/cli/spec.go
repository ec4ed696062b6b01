// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/gojail/state"
)

func newSpecCommand(n *localNode) *cobra.Command {
	var job string
	var stage bool
	cmd := &cobra.Command{
		Use:   "spec {JAIL | --job ID [JAIL]}",
		Short: "Print the OCI config.json of a jail, or of a job's sandbox",
		Long: `Prints what a jail consists of, in the terms of the OCI runtime specification:
root, mounts in order, devices, hidden and read-only paths, and the isolation:
namespaces, the capability bounding set, system calls.

With the name of a jail: what a job started now would get on this node. With
--job: what that job got when it started. A job with several jails, or with
different --jail-mount in its steps, has several sandboxes; name one of them.`,
		Example: `  gojail spec debian
  gojail spec --job 4711
  gojail spec debian | jq -r '.mounts[] | .destination + " <- " + .source'`,
		Args:              cmdline.TakeUpToOneArgument("the name of a jail"),
		ValidArgsFunction: n.CompleteJailNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := strings.Join(args, "")
			var spec *specs.Spec
			var err error
			switch {
			case job != "" && stage:
				return fmt.Errorf("--stage requires the name of a jail and excludes --job")
			case job != "":
				spec, err = n.readJobSpec(job, name)
			case name == "":
				return fmt.Errorf("missing argument: give the name of a jail, or --job; see: gojail spec --help")
			default:
				spec, err = n.planJailSpec(name, stage)
			}
			if err != nil {
				return err
			}
			return cmdline.PrintJSON(cmd.OutOrStdout(), spec)
		},
	}
	cmd.Flags().StringVar(&job, "job", "", "the job's id (see gojail ls)")
	cmd.Flags().BoolVar(&stage, "stage", false, "print the view of Slurm itself while it opens the output files")
	return cmd
}

// planJailSpec returns the spec that a job started now would get.
func (n *localNode) planJailSpec(name string, stage bool) (*specs.Spec, error) {
	c, j, err := n.LoadJail(name)
	if err != nil {
		return nil, err
	}
	facts, err := node.ReadHost(c, j, n.State)
	if err != nil {
		return nil, err
	}
	if stage {
		view, err := plan.Stage(c, j, facts)
		if err != nil {
			return nil, err
		}
		view.Spec.Mounts = slices.Concat(view.Spec.Mounts, view.Data, view.Foreign)
		return view.Spec, nil
	}
	view, err := plan.Jail(c, j, facts)
	if err != nil {
		return nil, err
	}
	view.Spec.Mounts = append(view.Spec.Mounts, plan.JobMounts(c, node.ReadHardware(c), j, "JOBID", false, os.Stat)...)
	if j.Writable != "" {
		view.Spec.Root.Readonly = false
		view.Spec.Mounts = slices.Insert(view.Spec.Mounts, 0, plan.RootOverlay(j))
	}
	return view.Spec, nil
}

// readJobSpec returns the recorded spec of a job's sandbox, and fails if the name fits none or
// several.
func (n *localNode) readJobSpec(id, name string) (*specs.Spec, error) {
	c, err := n.LoadConfig()
	if err != nil {
		return nil, err
	}
	s, err := state.OpenState(n.State)
	if err != nil {
		return nil, err
	}
	jobs, err := s.Jobs()
	if err != nil {
		return nil, err
	}
	var found, about []string
	for _, job := range jobs {
		for _, r := range job.Sandboxes {
			switch {
			case job.ID != id:
			case name == r.Name:
				return state.Spec(s, c, node.ReadHardware(c), id, name)
			case name == "" || name == r.Jail():
				found = append(found, r.Name)
				about = append(about, formatSandbox(s, id, r.Name))
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("job %s has no such sandbox on this node; see: gojail ls", id)
	case 1:
		return state.Spec(s, c, node.ReadHardware(c), id, found[0])
	}
	return nil, fmt.Errorf("job %s has several sandboxes; name one of: %s", id, strings.Join(about, ", "))
}

// formatSandbox returns a sandbox's name with its user mounts, which distinguish sandboxes of one jail.
func formatSandbox(state *state.State, job, sandbox string) string {
	mounts, err := state.UserMounts(job, sandbox)
	if err != nil || len(mounts) == 0 {
		return sandbox
	}
	var list []string
	for _, m := range mounts {
		list = append(list, m.String())
	}
	return sandbox + " (" + strings.Join(list, " ") + ")"
}
