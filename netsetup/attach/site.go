// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
)

// Files is where a node has what a Site is made of.
type Files struct {
	Config  string // network.toml
	Node    string // its name in slurm.conf
	Cluster string // ClusterName of slurm.conf
	State   string // gojail's state directory; empty after a reboot
	Scratch string // gojail's directory on the node's disk
}

// Dir is where this package keeps its state, below gojail's. Nothing makes it here.
func Dir(state string) string { return filepath.Join(state, "net") }

// Open makes the Site of this node, for a process in its own network namespace. It is
// good until end, which is never nil. If network.toml cannot be used, err says why and the Site is
// good for Release and Sweep still: VFs come home, and addresses are kept until it can.
func (f Files) Open() (site Site, end func(), err error) {
	site = Site{
		Cluster: f.Cluster, State: Dir(f.State), Queue: filepath.Join(f.Scratch, "ufm"),
		Roots: inventory.Host, Host: -1,
	}
	host, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return site, func() {}, fmt.Errorf("cannot open the node's network namespace: %w", errors.Unwrap(err))
	}
	site.Host = int(host.Fd())
	site.Config, err = config.Load(f.Config, f.Node)
	return site, func() { host.Close() }, err
}

// OpenToSweep is Open for Sweep: where no job has a network, nothing is missed of a network.toml
// that is not there. Somebody asked in vain for one on a node that has none.
func (f Files) OpenToSweep() (Site, func(), error) {
	site, end, err := f.Open()
	if site.Host >= 0 && errors.Is(err, fs.ErrNotExist) && store(site.State).empty() {
		err = nil
	}
	return site, end, err
}
