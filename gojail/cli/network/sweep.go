// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/netsetup/job"
)

// Sweep releases the networks of jobs that ended, and returns the number of things it printed. A
// node where no job ever had a network has nothing to release.
func Sweep(n *cmdline.Node, cmd *cobra.Command, c *config.Config, state *state.State) (done int, err error) {
	where := job.Node{Config: n.Network, Name: n.Name, Cluster: node.SlurmValue(c, "ClusterName"), State: n.State,
		Scratch: c.Scratch}
	if n.Kernel != nil {
		where.Roots = n.Kernel.Roots
	}
	swept, err := where.Sweep(cmd.Context(), sandbox.Alive(state, c))
	if swept == nil {
		return 0, err
	}
	out := cmd.OutOrStdout()
	for _, id := range swept.Released {
		fmt.Fprintf(out, "released the VFs of job %s\n", id)
	}
	for _, address := range swept.Addresses {
		fmt.Fprintf(out, "released the address %s\n", address)
	}
	for _, k := range swept.Leftovers {
		what := strings.TrimSuffix(k.PCI+" of job "+k.Job, " of job ")
		fmt.Fprintf(out, "kept %s: %s\n", strings.TrimPrefix(what, " of "), k.Why)
	}
	for _, problem := range swept.Problems {
		err = errors.Join(err, errors.New(problem))
	}
	return len(swept.Released) + len(swept.Addresses) + len(swept.Leftovers), err
}
