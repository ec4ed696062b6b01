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

// Node says where a node keeps what the networks of its jobs are made of.
type Node struct {
	Config  string          // path of network.toml
	Name    string          // its name in slurm.conf
	Cluster string          // ClusterName of slurm.conf
	State   string          // gojail's state directory; empty after a reboot
	Scratch string          // gojail's directory on the node's disk
	Roots   inventory.Roots // the zero value is inventory.Host
}

// open makes the Site of this node, for a process in the node's own network namespace. It is
// good until end, which is never nil. If network.toml cannot be used, err says why and the
// Site is still good for Release and Sweep: VFs come home, and addresses are kept until it can.
// Without a Site, Host is -1.
func (n Node) open() (site attach.Site, end func(), err error) {
	site = attach.Site{
		Cluster: n.Cluster, State: attach.Dir(n.State), Queue: filepath.Join(n.Scratch, "ufm"),
		Roots: n.roots(), Host: -1,
	}
	host, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return site, func() {}, fmt.Errorf("cannot open the node's network namespace: %w", errors.Unwrap(err))
	}
	site.Host = int(host.Fd())
	site.Config, err = config.Load(n.Config, n.Name)
	return site, func() { host.Close() }, err
}

// openToSweep is open for Sweep: where no job has a network, a missing network.toml is no
// error. Some job asked in vain for a network on a node that has none.
func (n Node) openToSweep() (attach.Site, func(), error) {
	site, end, err := n.open()
	if site.Host >= 0 && errors.Is(err, fs.ErrNotExist) && attach.Empty(site.State) {
		err = nil
	}
	return site, end, err
}

func (n Node) roots() inventory.Roots {
	if n.Roots == (inventory.Roots{}) {
		return inventory.Host
	}
	return n.Roots
}
