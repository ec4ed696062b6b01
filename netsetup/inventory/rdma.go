// SPDX-License-Identifier: Apache-2.0

package inventory

import "strings"

// RDMA is an RDMA device of a PCI function, as /sys/class/infiniband shows it.
type RDMA struct {
	Name     string `json:"name"`  // "mlx5_2"
	Verbs    string `json:"verbs"` // device node in /dev/infiniband: "uverbs2"
	NodeGUID string `json:"node_guid"`
	Ports    []Port `json:"ports"`
}

// Port is a port of an RDMA device. State and Physical are the kernel's words.
type Port struct {
	Number   int    `json:"number"`
	State    string `json:"state"`    // "ACTIVE", "INIT", "DOWN"
	Physical string `json:"physical"` // "LinkUp", "Disabled", "Polling"
	Link     string `json:"link"`     // Ethernet or InfiniBand
	LID      int    `json:"lid"`      // 0: not assigned by a subnet manager
	SMLID    int    `json:"sm_lid"`   // LID of the subnet manager; 0: none
}

func readRDMA(d directory) []RDMA {
	verbs := map[string]string{}
	for _, name := range d.listNames("infiniband_verbs") {
		verbs[d.readText("infiniband_verbs/"+name+"/ibdev")] = name
	}
	var all []RDMA
	for _, name := range d.listNames("infiniband") {
		dev := d.in("infiniband").in(name)
		r := RDMA{Name: name, Verbs: verbs[name], NodeGUID: dev.readText("node_guid")}
		for _, number := range dev.listNames("ports") {
			port := dev.in("ports").in(number)
			r.Ports = append(r.Ports, Port{
				Number:   dev.parseNumber(number),
				State:    trimStateNumber(port.readText("state")),
				Physical: trimStateNumber(port.readText("phys_state")),
				Link:     parseLinkLayer(port.readText("link_layer")),
				LID:      port.readNumber("lid", 0),
				SMLID:    port.readNumber("sm_lid", 0),
			})
		}
		all = append(all, r)
	}
	return all
}

// trimStateNumber returns "ACTIVE" for "4: ACTIVE".
func trimStateNumber(text string) string {
	_, word, found := strings.Cut(text, ":")
	if !found {
		return text
	}
	return strings.TrimSpace(word)
}

func parseLinkLayer(text string) string {
	switch text {
	case "Ethernet":
		return Ethernet
	case "InfiniBand":
		return InfiniBand
	}
	return ""
}

func findRDMALink(all []RDMA) string {
	for _, r := range all {
		for _, port := range r.Ports {
			if port.Link != "" {
				return port.Link
			}
		}
	}
	return ""
}
