// SPDX-License-Identifier: Apache-2.0

package inventory

import "strings"

// RDMA is an RDMA device of a function, as /sys/class/infiniband shows it.
type RDMA struct {
	Name     string `json:"name"`  // "mlx5_2"
	Verbs    string `json:"verbs"` // "uverbs2": its node in /dev/infiniband
	NodeGUID string `json:"node_guid"`
	Ports    []Port `json:"ports"`
}

// Port is a port of an RDMA device, in the kernel's own words.
type Port struct {
	Number   int    `json:"number"`
	State    string `json:"state"`    // "ACTIVE", "INIT", "DOWN"
	Physical string `json:"physical"` // "LinkUp", "Disabled", "Polling"
	Link     string `json:"link"`     // Ethernet or InfiniBand
	LID      int    `json:"lid"`      // 0: no subnet manager has given one
	SMLID    int    `json:"sm_lid"`   // of the subnet manager; 0: none
}

func readRDMA(d directory) []RDMA {
	verbs := map[string]string{}
	for _, name := range d.names("infiniband_verbs") {
		verbs[d.text("infiniband_verbs/"+name+"/ibdev")] = name
	}
	var all []RDMA
	for _, name := range d.names("infiniband") {
		dev := d.in("infiniband").in(name)
		r := RDMA{Name: name, Verbs: verbs[name], NodeGUID: dev.text("node_guid")}
		for _, number := range dev.names("ports") {
			port := dev.in("ports").in(number)
			r.Ports = append(r.Ports, Port{
				Number:   dev.numeric(number),
				State:    afterColon(port.text("state")),
				Physical: afterColon(port.text("phys_state")),
				Link:     layer(port.text("link_layer")),
				LID:      port.number("lid", 0),
				SMLID:    port.number("sm_lid", 0),
			})
		}
		all = append(all, r)
	}
	return all
}

// afterColon is "ACTIVE" of "4: ACTIVE".
func afterColon(text string) string {
	_, word, found := strings.Cut(text, ":")
	if !found {
		return text
	}
	return strings.TrimSpace(word)
}

func layer(text string) string {
	switch text {
	case "Ethernet":
		return Ethernet
	case "InfiniBand":
		return InfiniBand
	}
	return ""
}

func rdmaLink(all []RDMA) string {
	for _, r := range all {
		for _, port := range r.Ports {
			if port.Link != "" {
				return port.Link
			}
		}
	}
	return ""
}
