// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/netsetup/link"
)

// describeNetwork returns the description of the job's network, which the job gets and `gojail net show` prints.
func (s *session) describeNetwork(rec *record, rails []*rail) (*Network, error) {
	n := &Network{Job: s.job, Rails: []RailNet{}}
	if rec.Control != nil {
		n.Control = &ControlNet{Name: controlName, Addresses: rec.Control.toLink("").Addresses}
		// Routes of a pool may include a default route, which replaces that of the control interface.
		if l, err := s.space.FindDefaultLink(rec.Control.Address.Is6()); err != nil || l.Name != controlName {
			return nil,
				errors.Join(
					fmt.Errorf("the default route leads to %q, not to %s: a route of a rail's pool has replaced it",
						l.Name, controlName), err)
		}
	}
	for _, r := range rails {
		net, err := s.describeRail(r, n)
		if err != nil {
			return nil, err
		}
		n.Rails = append(n.Rails, net)
	}
	n.Env = buildEnvironment(n)
	return n, nil
}

// describeRail returns the description of one rail, and adds the device nodes of its RDMA device to n. It runs after
// all moves, when names and numbers of devices no longer change.
func (s *session) describeRail(r *rail, n *Network) (RailNet, error) {
	r.host, r.job = s.host, s.space
	net := RailNet{Rail: r.entry.Rail, PCI: r.entry.PCI, PF: r.entry.PFName, VF: r.entry.VF, Table: r.entry.Table}
	if r.entry.hasInterface() {
		l, err := r.site.hardware.find(r.job, r.entry.PCI)
		if err != nil {
			return RailNet{}, fmt.Errorf("%s: %w", r.entry, err)
		}
		net.Name, net.MAC, net.MTU = l.Name, l.MAC.String(), l.MTU
	}
	for _, p := range r.config.Pools {
		net.Addresses = append(net.Addresses, r.prefixOf(p))
		if p.Gateway.IsValid() {
			net.Gateways = append(net.Gateways, p.Gateway)
		}
	}
	names, files, err := r.findRDMA()
	if err != nil {
		return RailNet{}, err
	}
	if net.GID = r.gid; names != nil {
		net.RDMA, net.RDMAMore = names[0], names[1:]
	}
	for _, f := range files {
		if r.entry.isWhole() && isManagement(f) {
			continue
		}
		if !slices.Contains(n.Files, f) {
			n.Files = append(n.Files, f)
		}
	}
	return net, nil
}

// isManagement reports whether a device node sends management packets: of a whole card, which has the port to itself,
// they could change the fabric (umadN and issmN, drivers/infiniband/core/user_mad.c).
func isManagement(f link.CharDevice) bool {
	name := filepath.Base(f.Path)
	return strings.HasPrefix(name, "umad") || strings.HasPrefix(name, "issm")
}

// buildEnvironment returns the environment variables that describe the network to the job's programs. Programs that
// open sockets themselves (NCCL's bootstrap) use the control interface, which reaches every node, or the rails if there
// is nnet.
func buildEnvironment(n *Network) []string {
	var names, interfaces, hcas, devices, rails []string
	for _, r := range n.Rails {
		names = append(names, r.Rail)
		for _, device := range r.ListRDMA() {
			hcas, devices = append(hcas, device), append(devices, device+":1")
		}
		prefix := "GOJAIL_NET_" + strings.ToUpper(strings.ReplaceAll(r.Rail, "-", "_")) + "_"
		if r.Name != "" {
			interfaces = append(interfaces, r.Name)
			rails = append(rails, prefix+"IFNAME="+r.Name)
		}
		rails = append(rails, prefix+"PCI="+r.PCI)
		var addresses []string
		for _, a := range r.Addresses {
			addresses = append(addresses, a.Addr().String())
		}
		if addresses != nil {
			rails = append(rails, prefix+"ADDRESS="+strings.Join(addresses, ","))
		}
		if r.RDMA != "" {
			rails = append(rails, prefix+"RDMA="+strings.Join(r.ListRDMA(), ","))
		}
		if r.GID != nil {
			rails = append(rails, prefix+"GID_INDEX="+strconv.Itoa(*r.GID))
		}
	}
	if n.Control != nil {
		interfaces = []string{n.Control.Name}
	}
	var env []string
	list := func(name, before string, values []string) {
		if len(values) > 0 {
			env = append(env, name+"="+before+strings.Join(values, ","))
		}
	}
	list("GOJAIL_NET_RAILS", "", names)
	list("NCCL_SOCKET_IFNAME", "=", interfaces) // "=": exact names, not prefixes
	list("NCCL_IB_HCA", "=", hcas)
	list("UCX_NET_DEVICES", "", devices)
	if index := findCommonGID(n); index != "" {
		env = append(env, "NCCL_IB_GID_INDEX="+index)
	}
	return append(env, rails...)
}
