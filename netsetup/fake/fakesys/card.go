// SPDX-License-Identifier: Apache-2.0

package fakesys

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stretchr/testify/require"
)

// Card is a PF. VF i of 0000:86:00.0 is 0000:86:01.0 plus i; function 1's begin at 0000:86:09.0.
type Card struct {
	PCI, Under, Name string
	NUMA             int
	CPUs             string
	TotalVFs         int    // 0: a plain NIC
	NumVFs           int    // there from the start, with drivers
	InfiniBand       bool   // else Ethernet
	RDMA             string // name of the RDMA device, "mlx5_0"; the VFs' are <RDMA>v<i>
	Driver           string // default "mlx5_core"
}

// AddCard makes a card and its VFs.
func (n *Tree) AddCard(c Card) {
	n.t.Helper()
	if c.Driver == "" {
		c.Driver = "mlx5_core"
	}
	files := map[string]string{"device": "0x1017"}
	if c.TotalVFs > 0 {
		maps.Copy(files, map[string]string{"sriov_totalvfs": strconv.Itoa(c.TotalVFs), "sriov_numvfs": "0", "sriov_drivers_autoprobe": "1"})
	}
	n.cards[c.PCI] = c
	n.function(c, c.PCI, files)
	n.bind(c, c.PCI, c.Name, c.RDMA, 0)
	for i := range c.NumVFs {
		n.addVF(c, i)
		n.bindVF(c, i)
	}
	if c.NumVFs > 0 {
		n.File(n.Device(c.PCI)+"/sriov_numvfs", strconv.Itoa(c.NumVFs))
	}
}

func (n *Tree) function(c Card, pci string, files map[string]string) {
	all := map[string]string{"vendor": "0x15b3", "class": "0x020000",
		"numa_node": strconv.Itoa(c.NUMA), "local_cpulist": c.CPUs}
	maps.Copy(all, files)
	n.device(pci, c.Under, all)
}

// VF is the PCI address of a card's VF.
func (c Card) VF(i int) string {
	function := int(c.PCI[len(c.PCI)-1] - '0')
	return fmt.Sprintf("%s%02x.%x", c.PCI[:len(c.PCI)-4], 1+8*function+i/8, i%8)
}

func (n *Tree) addVF(c Card, i int) {
	n.function(c, c.VF(i), map[string]string{"device": "0x1018"})
	n.link(n.Device(c.VF(i)), fmt.Sprintf("%s/virtfn%d", n.Device(c.PCI), i))
	n.link(n.Device(c.PCI), n.Device(c.VF(i))+"/physfn")
}

func (n *Tree) removeVFs(c Card) {
	links, _ := filepath.Glob(n.Device(c.PCI) + "/virtfn*")
	for _, link := range links {
		target, err := os.Readlink(link)
		require.NoError(n.t, err)
		require.NoError(n.t, os.Remove(link))
		n.Gone(filepath.Base(target))
	}
}

func (n *Tree) bindVF(c Card, i int) {
	rdma := ""
	if c.RDMA != "" {
		rdma = fmt.Sprintf("%sv%d", c.RDMA, i)
	}
	n.bind(c, c.VF(i), fmt.Sprintf("%sv%d", c.Name, i), rdma, i+1)
}

// bind gives a function its driver, and so an interface and an RDMA device.
func (n *Tree) bind(c Card, pci, name, rdma string, number int) {
	dir := n.Device(pci)
	n.File(n.Sys+"/bus/pci/drivers/"+c.Driver+"/unbind", "")
	n.link(n.Sys+"/bus/pci/drivers/"+c.Driver, dir+"/driver")
	kind, link, mac := "1", "Ethernet", fmt.Sprintf("b8:ce:f6:00:00:%02x", number)
	if c.InfiniBand {
		kind, link = "32", "InfiniBand"
		mac = fmt.Sprintf("00:00:10:49:fe:80:00:00:00:00:00:00:b8:ce:f6:03:00:00:00:%02x", number)
	}
	net := dir + "/net/" + name
	for file, text := range map[string]string{"type": kind, "mtu": "1500", "address": mac, "operstate": "up", "flags": "0x1003"} {
		n.File(net+"/"+file, text)
	}
	if rdma == "" {
		return
	}
	n.File(dir+"/infiniband_verbs/uverbs"+strconv.Itoa(number)+"/ibdev", rdma)
	n.File(dir+"/infiniband/"+rdma+"/node_guid", fmt.Sprintf("b8ce:f603:0000:%04x", number))
	port := dir + "/infiniband/" + rdma + "/ports/1/"
	for file, text := range map[string]string{"state": "4: ACTIVE", "phys_state": "5: LinkUp", "link_layer": link, "lid": "0x7", "sm_lid": "0x1"} {
		n.File(port+file, text)
	}
}

// ToJob moves a VF to another network namespace: its directories become empty.
func (n *Tree) ToJob(pci string) {
	for _, class := range []string{"net", "infiniband", "infiniband_verbs"} {
		entries, _ := os.ReadDir(filepath.Join(n.Device(pci), class))
		for _, e := range entries {
			require.NoError(n.t, os.RemoveAll(filepath.Join(n.Device(pci), class, e.Name())))
		}
	}
}

// HasVF says whether the card with that interface has a VF of that number.
func (n *Tree) HasVF(name string, number int) bool {
	for _, c := range n.cards {
		if c.Name == name {
			_, err := os.Lstat(fmt.Sprintf("%s/virtfn%d", n.Device(c.PCI), number))
			return err == nil
		}
	}
	return false
}
