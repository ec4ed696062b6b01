// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail"
	"github.com/gojail/gojail/netsetup/attach"
)

// sweepNetworks gives back what jobs that are gone had of networks, and says how
// much it did. A node where no job ever had a network has nothing to sweep.
func (n *node) sweepNetworks(cmd *cobra.Command, c *gojail.Config, state *gojail.State) (done int, err error) {
	if _, err := os.Lstat(n.netState()); errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	h, err := n.hardware()
	if err != nil {
		return 0, err
	}
	defer h.names.Close()
	host, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return 0, fmt.Errorf("cannot open the node's network namespace: %w", err)
	}
	defer host.Close()
	site := attach.Site{Cluster: c.SlurmValue("ClusterName"), State: n.netState(), Roots: h.Roots, Host: int(host.Fd()),
		Queue: filepath.Join(c.Scratch, "ufm")}
	if site.Config, err = n.loadNetwork(); err != nil {
		return 0, err
	}
	swept, err := attach.Sweep(cmd.Context(), site, gojail.Alive(state, c))
	if swept == nil {
		return 0, err
	}
	out := cmd.OutOrStdout()
	for _, job := range swept.Released {
		fmt.Fprintf(out, "gave back the VFs of job %s\n", job)
	}
	for _, address := range swept.Addresses {
		fmt.Fprintf(out, "freed the address %s\n", address)
	}
	for _, k := range swept.Kept {
		what := strings.TrimSuffix(k.PCI+" of job "+k.Job, " of job ")
		fmt.Fprintf(out, "kept %s: %s\n", strings.TrimPrefix(what, " of "), k.Why)
	}
	for _, problem := range swept.Problems {
		err = errors.Join(err, errors.New(problem))
	}
	return len(swept.Released) + len(swept.Addresses) + len(swept.Kept), err
}
