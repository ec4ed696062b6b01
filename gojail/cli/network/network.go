// SPDX-License-Identifier: Apache-2.0

// Package network has the commands of gojail about VFs and the networks of jobs.
package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/provision"
)

// localNode is the node that the global flags name, with the commands of this package.
type localNode struct{ *cmdline.Node }

// NewCommands returns the commands about VFs and the networks of jobs.
func NewCommands(node *cmdline.Node) []*cobra.Command {
	n := &localNode{node}
	return []*cobra.Command{newVFCommand(n), newPoolCommand(n), newGresCommand(n), newNodeConfCommand(n),
		newNetCommand(n)}
}

// hardware is the node's cards and the means to change them.
type hardware struct {
	*provision.Kernel
	names *link.Namespace // for the alternative names; nil in tests
}

// openHardware returns the node's cards. The caller closes names.
func (n *localNode) openHardware() (hardware, error) {
	if n.Kernel != nil {
		return hardware{n.Kernel, nil}, nil
	}
	k, ns, err := provision.OpenHost()
	return hardware{k, ns}, err
}

// readInventory reads the node's cards and VFs, with all their names.
func (n *localNode) readInventory(h hardware) (*inventory.Inventory, error) {
	return attach.ReadInventory(h.Roots, h.names, n.networkState())
}

// loadNetwork reads and checks network.toml.
func (n *localNode) loadNetwork() (*config.Config, error) {
	c, err := config.Load(n.Network, n.Name)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; copy network.toml.example there, or name another file with --network", err)
	}
	return c, err
}

// networkState returns the state directory of package attach, which need not exist.
func (n *localNode) networkState() string { return attach.StateDir(n.State) }

// lockNetwork takes the lock that package attach holds while it chooses VFs for a job. Closing the file,
// or the end of the process, releases it.
func (n *localNode) lockNetwork(ctx context.Context, say io.Writer) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(n.State), 0o755); err != nil {
		return nil, fmt.Errorf("cannot create the state directory %s: %w", n.State, err)
	}
	if _, err := state.OpenState(n.State); err != nil {
		return nil, err
	}
	return attach.LockNode(ctx, n.networkState(), sayBusy(say))
}

func sayBusy(say io.Writer) func(path string) {
	return func(path string) { fmt.Fprintf(say, "waiting for %s: a launch or another gojail holds it\n", path) }
}

// readHolders returns the job of each VF in use and the reason of each quarantine, by PCI address. A node
// where no job ever had a VF has no records.
func (n *localNode) readHolders() (jobs, quarantined map[string]string, err error) {
	held, err := attach.ListHeld(n.networkState())
	jobs, quarantined = map[string]string{}, map[string]string{}
	for _, vf := range held {
		if vf.Quarantined != "" {
			quarantined[vf.PCI] = vf.Quarantined
		} else {
			jobs[vf.PCI] = vf.Job
		}
	}
	return jobs, quarantined, err
}
