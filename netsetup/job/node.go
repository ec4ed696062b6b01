// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
)

// Node holds the paths and names from which a node's job networks are managed.
type Node struct {
	Config  string          // path of network.toml
	Name    string          // name of the node in slurm.conf
	Cluster string          // ClusterName of slurm.conf
	State   string          // gojail's state directory; empty after a reboot
	Scratch string          // gojail's directory on the node's disk
	Roots   inventory.Roots // roots of the inventory; zero value: inventory.Host
}

// openSite returns the Site of this node, for a process in the node's own network namespace.
// The Site is valid until end, which is never nil, is called. If network.toml cannot be
// loaded, openSite returns an error together with a Site that is still fit for Release and
// Sweep: VFs are moved back, and addresses stay leased until it can be loaded. If there is
// no Site, Host is -1.
func (n Node) openSite() (site attach.Site, end func(), err error) {
	site = attach.Site{
		Cluster: n.Cluster, State: attach.StateDir(n.State), Queue: filepath.Join(n.Scratch, "ufm"),
		Roots: n.rootsOrHost(), Host: -1,
	}
	host, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return site, func() {}, fmt.Errorf("cannot open the node's network namespace: %w", errors.Unwrap(err))
	}
	site.Host = int(host.Fd())
	site.Config, err = config.Load(n.Config, n.Name)
	return site, func() { host.Close() }, err
}

// openSiteToSweep returns the Site for Sweep. A missing network.toml is no error if no job
// has a network: a job has requested a network on a node without one.
func (n Node) openSiteToSweep() (attach.Site, func(), error) {
	site, end, err := n.openSite()
	if site.Host >= 0 && errors.Is(err, fs.ErrNotExist) && attach.IsEmpty(site.State) {
		err = nil
	}
	return site, end, err
}

func (n Node) rootsOrHost() inventory.Roots {
	if n.Roots == (inventory.Roots{}) {
		return inventory.Host
	}
	return n.Roots
}
