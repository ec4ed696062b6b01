// SPDX-License-Identifier: Apache-2.0

package attach

import "strings"

// environment is what a job's programs are told about its network. Programs that
// open sockets themselves (NCCL's bootstrap) go by the control interface, which
// reaches every node; without one, by the rails.
func environment(n *Network) []string {
	var names, interfaces, hcas, devices, rails []string
	for _, r := range n.Rails {
		names, interfaces = append(names, r.Rail), append(interfaces, r.Name)
		if r.RDMA != "" {
			hcas, devices = append(hcas, r.RDMA), append(devices, r.RDMA+":1")
		}
		prefix := "GOJAIL_NET_" + strings.ToUpper(strings.ReplaceAll(r.Rail, "-", "_")) + "_"
		rails = append(rails, prefix+"IFNAME="+r.Name, prefix+"PCI="+r.PCI)
		var addresses []string
		for _, a := range r.Addresses {
			addresses = append(addresses, a.Addr().String())
		}
		if addresses != nil {
			rails = append(rails, prefix+"ADDRESS="+strings.Join(addresses, ","))
		}
		if r.RDMA != "" {
			rails = append(rails, prefix+"RDMA="+r.RDMA)
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
	list("NCCL_SOCKET_IFNAME", "=", interfaces) // "=": these names, not all that begin so
	list("NCCL_IB_HCA", "=", hcas)
	list("UCX_NET_DEVICES", "", devices)
	return append(env, rails...)
}
