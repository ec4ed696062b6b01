// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/provision"
)

// hardware is the node's cards and how they are changed.
type hardware struct {
	*provision.Kernel
	names *link.Namespace // knows the alternative names; nil: of tests
}

func (n *localNode) hardware() (hardware, error) {
	if n.kernel != nil {
		return hardware{n.kernel, nil}, nil
	}
	k, ns, err := provision.Host()
	return hardware{k, ns}, err
}

func (h hardware) inventory() (*inventory.Inventory, error) {
	inv, err := inventory.Read(h.Roots)
	if err == nil && h.names != nil {
		err = provision.AltNames(inv, h.names)
	}
	return inv, err
}

// besideConfig is where the plugin looks for network.toml.
func (n *localNode) besideConfig() string {
	return filepath.Join(filepath.Dir(n.Config), filepath.Base(config.DefaultPath))
}

func (n *localNode) loadNetwork() (*config.Config, error) { return config.Load(n.network, n.Name) }

// netState is where package attach keeps what it does. Nothing makes it here.
func (n *localNode) netState() string { return attach.Dir(n.State) }

// lockNetwork takes the lock that attach holds while it chooses VFs for a job.
// It ends with the file, or the process.
func (n *localNode) lockNetwork(ctx context.Context, say io.Writer) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(n.State), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the state directory %s: %w", n.State, err)
	}
	if _, err := state.OpenState(n.State); err != nil {
		return nil, err
	}
	return attach.Lock(ctx, n.netState(), func(path string) {
		fmt.Fprintf(say, "waiting for %s: a job is given its VFs, or another gojail is at work\n", path)
	})
}

// holders tells who has which VF. A node where no job ever had one has no records.
func (n *localNode) holders() (jobs, quarantined map[string]string, err error) {
	if _, err := os.Lstat(n.netState()); errors.Is(err, os.ErrNotExist) {
		return map[string]string{}, nil, nil
	}
	return attach.Held(n.netState())
}
